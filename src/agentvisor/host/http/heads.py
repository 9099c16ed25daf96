"""A request's URL and headers are bounded before anything is done with them."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from agentvisor.host.http.errors import refusal, refuse

_SEPARATORS = 4
"""Bytes of `: ` and of the line's end, of each header."""


class BoundedHeads:
    """Answers 414 or 431 for what is over the limit."""

    def __init__(self, app: ASGIApp, max_url: int, max_headers: int) -> None:
        self._app = app
        self._max_url = max_url
        self._max_headers = max_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        url = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
        headers = sum(len(name) + len(value) + _SEPARATORS for name, value in scope["headers"])
        refused = None
        if url > self._max_url:
            text = f"the URL has {url} bytes, and the limit is {self._max_url} (http.max_url): send a body instead"
            refused = refusal(414, text)
        elif headers > self._max_headers:
            text = f"the headers have {headers} bytes, and the limit is {self._max_headers} (http.max_headers)"
            refused = refusal(431, text)
        if refused is not None:
            await refuse(refused, scope, receive, send)
        else:
            await self._app(scope, receive, send)
