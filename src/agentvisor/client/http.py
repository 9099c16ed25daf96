"""A host's HTTP API, asked with the standard library alone: the bare SDK has no HTTP client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import cast
from urllib.parse import urlsplit

from agentvisor.core.errors import ERRORS, AgentVisorError, Internal, InvalidInput, PermissionRefused, Unavailable
from agentvisor.protocol.metadata import Json

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are never reached through a proxy."""

SECONDS = 30.0
NEXT_PAGE = "X-Pagination-Next"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key is for the address that was given, not for one that it names."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def read(
    endpoint: str, api_key: str | None, method: str, path: str, body: Json = None, *, seconds: float = SECONDS
) -> Json:
    """The JSON that a host answers with. `HTTPError` where it refuses; `Unavailable` where none answers."""
    return _read(endpoint, api_key, method, path, body, seconds=seconds)[0]


def _read(
    endpoint: str, api_key: str | None, method: str, path: str, body: Json, *, seconds: float = SECONDS
) -> tuple[Json, str | None]:
    """What a host answers with, and where the next page begins."""
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
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    where = endpoint.rstrip("/") + path
    request = urllib.request.Request(where, data, headers, method=method)  # noqa: S310 (http, checked above)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=seconds) as response:
            return cast("Json", json.load(response)), response.headers.get(NEXT_PAGE)
    except urllib.error.HTTPError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(
            f"no AgentVisor host answers at {endpoint} ({_reason(error)}): start one with `agentvisor dev`, "
            "or set AGENTVISOR_ENDPOINT to where one runs"
        ) from error


def ask(endpoint: str, api_key: str | None, method: str, path: str, body: Json = None) -> Json:
    """The JSON that a host answers with; its refusal is raised as the error of our tree that it is."""
    return ask_page(endpoint, api_key, method, path, body)[0]


def ask_page(endpoint: str, api_key: str | None, method: str, path: str, body: Json = None) -> tuple[Json, str | None]:
    """The same, with what names the next page (`X-Pagination-Next`); None after the last one."""
    try:
        return _read(endpoint, api_key, method, path, body)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(endpoint, error) from error


def _refusal(endpoint: str, error: urllib.error.HTTPError) -> AgentVisorError:
    if error.code == 401:
        return PermissionRefused(f"the AgentVisor host at {endpoint} refuses the key: set AGENTVISOR_API_KEY")
    try:
        told = cast("Json", json.load(error))
    except ValueError:
        told = None
    facts = told if isinstance(told, dict) else {}
    details = facts.get("metadata")
    message = str(facts.get("message") or f"what answers at {endpoint} is not an AgentVisor host: HTTP {error.code}")
    named = {name: str(value) for name, value in details.items()} if isinstance(details, dict) else {}
    return ERRORS.get(str(facts.get("code")), Internal)(message, **named)


def _reason(error: Exception) -> str:
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
