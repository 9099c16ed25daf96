"""Who may call: whoever shows a key or token that counts; where none is needed, this machine's own programs and pages.

A host that needs no key listens on loopback only (the configuration sees to it). Web pages elsewhere reach loopback
through the browser all the same: by a foreign Origin, or by a name that resolves to 127.0.0.1. Both are refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentvisor.core.errors import PermissionRefused, Unavailable
from agentvisor.core.owners import EVERYONE
from agentvisor.host.callers import Callers
from agentvisor.host.http import codec
from agentvisor.host.http.errors import error_response, refusal, refuse
from agentvisor.host.http.json import JsonResponse
from agentvisor.host.http.paths import PROBES
from agentvisor.host.http.services import OWNER_IN_SCOPE

TRUSTED_ORIGINS = ("https://smith.langchain.com", "https://eu.smith.langchain.com", "https://agentchat.vercel.app")
"""Pages of LangGraph Studio and agent-chat-ui: they may drive a developer's own host."""

LOOPBACK_ORIGIN = r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?"

_OPEN = (*PROBES, *codec.PATHS)
"""Health checks carry no key, and what decrypts for Temporal's UI has one of its own."""


class Access:
    """Lets a request or a WebSocket through, and notes for whom it acts; or answers 401, 403 or 503."""

    def __init__(self, app: ASGIApp, callers: Callers, origins: Sequence[str]) -> None:
        """`origins`: of pages that may call, besides this machine's where no key is needed; with keys, empty is all."""
        self._app = app
        self._callers = callers
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["path"] in _OPEN:
            scope[OWNER_IN_SCOPE] = EVERYONE  # there is nothing behind that anybody owns
            await self._app(scope, receive, send)
            return
        refused = await self._refused(scope)
        if refused is not None:
            await refuse(refused, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _refused(self, scope: Scope) -> JsonResponse | None:
        """The answer to a caller who may not; else the owner is in the scope."""
        headers = Headers(scope=scope)
        refused = self._check_place(headers, scope["type"])
        if refused is not None:
            return refused
        try:
            owner = await self._callers.owner_of(_shown(headers), _client(scope))
        except Unavailable as error:
            return error_response(error)
        if owner is None:
            return _unauthenticated()
        scope[OWNER_IN_SCOPE] = owner
        return None

    def _check_place(self, headers: Headers, kind: str) -> JsonResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._callers.must_show:
            # Of requests the browser asks first (CORS); of a WebSocket it does not.
            if kind == "http" or origin is None or not self._origins or self._origins & {"*", origin}:
                return None
            return error_response(PermissionRefused(f"pages of {origin[:80]!r} may not call (http.cors_origins)"))
        if not _is_loopback(_name(f"//{host}")):
            return error_response(
                PermissionRefused(
                    f"this host answers to localhost only, not to {host[:80]!r}: "
                    "to be reached by another name it needs a key (http.operator_key)"
                )
            )
        if origin is None or origin in self._origins or _is_loopback(_name(origin)):
            return None
        return error_response(
            PermissionRefused(f"pages of {origin[:80]!r} may not call a host without a key (http.operator_key)")
        )


def _shown(headers: Headers) -> str | None:
    """The key or token. Two of them are none: something on the way may have looked at the other one."""
    authorizations, keys = headers.getlist("authorization"), headers.getlist("x-api-key")
    if len(authorizations) > 1 or len(keys) > 1:
        return None
    scheme, _, token = (authorizations or [""])[0].partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return keys[0] if keys else None


def _client(scope: Scope) -> str:
    address: tuple[str, int] | None = scope.get("client")
    return address[0] if address else "unknown"


def _unauthenticated() -> JsonResponse:
    text = "this host needs a key or token that counts: send `Authorization: Bearer KEY` or `X-Api-Key: KEY`"
    return refusal(401, text, {"www-authenticate": "Bearer"})


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
