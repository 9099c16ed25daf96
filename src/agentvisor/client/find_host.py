"""From a host's HTTP address to its gRPC address and its limits: what `GET /info` says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from agentvisor.core.errors import InvalidInput, PermissionRefused, Unavailable

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are never reached through a proxy."""

_ANY_ADDRESS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 (recognised, not bound)
_SECONDS = 5.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key is for the address that was given, not for one that it names."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class FoundHost(NamedTuple):
    """What a host says of itself; sizes in bytes, None where it does not say."""

    grpc: str
    max_value: int | None
    max_stored_value: int | None


def find_grpc(endpoint: str, api_key: str | None) -> str:
    """The address of the host's gRPC end."""
    return find_host(endpoint, api_key).grpc


def find_host(endpoint: str, api_key: str | None) -> FoundHost:
    """What the host's `/info` says; `Unavailable` that says what to start where none answers."""
    url = urlsplit(endpoint)
    if url.scheme != "http" or not url.hostname:
        raise InvalidInput(f"AGENTVISOR_ENDPOINT is {endpoint!r}: it must be like http://127.0.0.1:8090")
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        # Often the line end of the file that it was read from.
        raise InvalidInput(
            "the API key (AGENTVISOR_API_KEY) holds characters that no header can carry", field="api_key"
        )
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if url.hostname in LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    request = urllib.request.Request(endpoint.rstrip("/") + "/info", headers=headers)  # noqa: S310 (http, checked above)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_SECONDS) as response:
            info = json.load(response)
    except urllib.error.HTTPError as error:
        _refuse(endpoint, error)
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(
            f"no AgentVisor host answers at {endpoint} ({_reason(error)}): start one with `agentvisor dev`, "
            "or set AGENTVISOR_ENDPOINT to where one runs"
        ) from error
    said = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    address = said.get("grpc")
    if not isinstance(address, str) or ":" not in address:
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host, or one without gRPC")
    host, _, port = address.rpartition(":")
    if host in _ANY_ADDRESS:
        address = f"[{url.hostname}]:{port}" if ":" in url.hostname else f"{url.hostname}:{port}"
    return FoundHost(address, _size(said, "max_value"), _size(said, "max_stored_value"))


def _size(said: Mapping[str, object], name: str) -> int | None:
    limits = said.get("limits")
    value = cast("dict[str, object]", limits).get(name) if isinstance(limits, dict) else None
    return value if isinstance(value, int) else None


def _refuse(endpoint: str, error: urllib.error.HTTPError) -> NoReturn:
    with error:
        if error.code in {401, 403}:
            raise PermissionRefused(
                f"the AgentVisor host at {endpoint} refuses the key: set AGENTVISOR_API_KEY"
            ) from error
        raise Unavailable(f"what answers at {endpoint} is not an AgentVisor host: HTTP {error.code}") from error


def _reason(error: Exception) -> str:
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
