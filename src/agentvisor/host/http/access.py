"""Who may call: the operator's key where there is one, else only this machine's own programs and pages.

A host without a key listens on loopback only (the configuration sees to it). Web pages elsewhere reach loopback through
the browser all the same: by a foreign Origin, or by a name that resolves to 127.0.0.1. Both are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentvisor.core.errors import PermissionRefused
from agentvisor.core.owners import EVERYONE
from agentvisor.host.http.errors import error_response
from agentvisor.host.http.json import JsonResponse
from agentvisor.host.http.services import OWNER_IN_SCOPE

TRUSTED_ORIGINS = ("https://smith.langchain.com", "https://eu.smith.langchain.com", "https://agentchat.vercel.app")
"""Pages of LangGraph Studio and agent-chat-ui: they may drive a developer's own host."""

LOOPBACK_ORIGIN = r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?"

_OPEN = ("/ok",)
"""Health checks carry no key."""


class Access:
    """Lets a request through, or answers 401 or 403."""

    def __init__(self, app: ASGIApp, operator_key: str | None) -> None:
        self._app = app
        self._key = operator_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[OWNER_IN_SCOPE] = EVERYONE
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = self._check_place(headers) if self._key is None else self._check_key(headers, self._key)
        await (answer or self._app)(scope, receive, send)

    def _check_key(self, headers: Headers, key: str) -> JsonResponse | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        shown = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if hmac.compare_digest(shown.encode(), key.encode()):
            return None
        text = "this host needs a key: send `Authorization: Bearer KEY` or `X-Api-Key: KEY` (http.operator_key)"
        body = {"detail": text, "code": "unauthenticated", "message": text}
        return JsonResponse(body, 401, {"www-authenticate": "Bearer"})

    def _check_place(self, headers: Headers) -> JsonResponse | None:
        host = headers.get("host", "")
        if not _is_loopback(_name(f"//{host}")):
            return error_response(
                PermissionRefused(
                    f"this host answers to localhost only, not to {host[:80]!r}: "
                    "to be reached by another name it needs a key (http.operator_key)"
                )
            )
        origin = headers.get("origin")
        if origin is None or origin in TRUSTED_ORIGINS or _is_loopback(_name(origin)):
            return None
        return error_response(
            PermissionRefused(f"pages of {origin[:80]!r} may not call a host without a key (http.operator_key)")
        )


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
