"""Sends one webhook: signed as Standard Webhooks say, to the address that was checked, following nobody elsewhere."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv6Address

import httpx

from agentvisor import __version__
from agentvisor.core.errors import InvalidInput, Unavailable
from agentvisor.host.webhook_address import WebhookAddresses

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_TRY_AGAIN = (408, 425, 429)


class Heard(Enum):
    """How it went."""

    YES = "delivered"
    NOT_YET = "failed"
    """It is worth another try."""
    NEVER = "refused"


@dataclass(frozen=True, slots=True)
class Answer:
    heard: Heard
    says: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """What is sent, and where."""

    url: str
    id: str
    """The same each time it is sent: by it a receiver knows what it has had already."""
    body: bytes
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers that name the span which it is sent in."""


async def send(webhook: Webhook, *, addresses: WebhookAddresses, key: bytes | None, now_s: int) -> Answer:
    """Post it once. Nothing is raised for what may go wrong on the way."""
    try:
        url, address = await addresses.pinned(webhook.url)
    except InvalidInput as error:
        return Answer(Heard.NEVER, error.message)
    except Unavailable as error:
        return Answer(Heard.NOT_YET, error.message)
    host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    headers = {
        "host": url.netloc.decode("ascii"),
        "content-type": "application/json",
        "user-agent": f"agentvisor/{__version__}",
        **webhook.trace,
        **signed(webhook, key, now_s),
    }
    # No proxy of the environment: it would resolve the name itself.
    client = httpx.AsyncClient(
        trust_env=False, follow_redirects=False, timeout=httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
    )
    request = client.build_request(
        "POST",
        url.copy_with(host=host),
        content=webhook.body,
        headers=headers,
        extensions={"sni_hostname": url.raw_host.decode("ascii")},
    )
    try:
        async with client, aclosing(await client.send(request, stream=True)) as response:
            return _answer(response.status_code)  # what else it says is not read
    except httpx.HTTPError as error:
        return Answer(Heard.NOT_YET, f"{type(error).__name__}: {error}")


def signed(webhook: Webhook, key: bytes | None, now_s: int) -> Mapping[str, str]:
    """The headers that name the webhook, and prove with the key that it comes from here and when it was sent."""
    headers = {ID_HEADER: webhook.id, TIMESTAMP_HEADER: str(now_s)}
    if key is None:
        return headers
    content = f"{webhook.id}.{now_s}.".encode() + webhook.body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return {**headers, SIGNATURE_HEADER: f"v1,{base64.b64encode(digest).decode()}"}


def _answer(status: int) -> Answer:
    if 200 <= status < 300:
        return Answer(Heard.YES, f"answered {status}")
    if 300 <= status < 400:
        return Answer(Heard.NEVER, f"answered {status}: redirects are not followed")
    again = status >= 500 or status in _TRY_AGAIN
    return Answer(Heard.NOT_YET if again else Heard.NEVER, f"answered {status}")
