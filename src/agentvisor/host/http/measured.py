"""Counts and times requests by the template of their route: paths, which callers choose, never become labels."""

from __future__ import annotations

from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentvisor.host.metrics import HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_NO_ROUTE = "none"
_GONE = 499
"""As nginx counts it: the client has left, and was told nothing."""


class Measured:
    """Stands before everything else of the app, so that what is refused is counted, too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        HTTP_IN_FLIGHT.inc()
        try:
            await self._app(scope, receive, seen.send)
        finally:
            HTTP_IN_FLIGHT.dec()
            HTTP_REQUESTS.labels(seen.method, seen.route, str(seen.status or _GONE)).inc()


class _Seen:
    """One request, as its answer passes by."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status = 0
        self._scope = scope
        self._send = send
        self._began = monotonic()

    @property
    def method(self) -> str:
        if self._scope["type"] == "websocket":
            return "WEBSOCKET"
        method: str = self._scope["method"]
        return method if method in _METHODS else "OTHER"

    @property
    def route(self) -> str:
        """Of the route that took it; the router notes it in the scope."""
        return getattr(self._scope.get("route"), "path", _NO_ROUTE)

    async def send(self, message: Message) -> None:
        if not self.status:
            self.status = _status(message)
            if self.status:
                HTTP_SECONDS.labels(self.method, self.route).observe(monotonic() - self._began)
        await self._send(message)


def _status(message: Message) -> int:
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return 101
        case "websocket.close":
            return 403
        case _:
            return 0
