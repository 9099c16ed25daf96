"""What a host tells of each request: a span, and a line of the log; never its query, its headers or its body."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import cast

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from agentvisor.host.config_telemetry import LogConfig
from agentvisor.host.http.paths import PROBES
from agentvisor.host.peer_feed import PATH as PEERS
from agentvisor.host.tracing.place import Place
from agentvisor.host.tracing.spans import RUN, THREAD, Kind, Tracing

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")

_UNTRACED = frozenset({*PROBES, "/metrics"})
"""Asked every few seconds, by programs."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_OF_PATH = {"thread_id": THREAD, "run_id": RUN}


def observed(app: ASGIApp, tracing: Tracing, logs: LogConfig) -> ASGIApp:
    """The app, with what is told of its requests; the app itself where that is nothing."""
    return Observing(app, tracing, at_info=logs.requests) if _is_told(tracing, logs) else app


def _is_told(tracing: Tracing, logs: LogConfig) -> bool:
    return tracing.is_on or logs.requests or logs.level == "debug"


class Observing:
    """Stands before everything else, so that it sees what is refused, too."""

    def __init__(self, app: ASGIApp, tracing: Tracing, *, at_info: bool) -> None:
        self._app = app
        self._tracing = tracing
        self._at_info = at_info

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["path"] in _UNTRACED or not self._tracing.is_on:
            await self._told(scope, receive, send)
            return
        headers = Headers(scope=scope)
        parent = Place.read(headers.get("traceparent", ""), ",".join(headers.getlist("tracestate")))
        method = _method(scope)
        with self._tracing.span(method, Kind.SERVER, parent, {"http.request.method": method}) as span:
            trace_id = span.place.trace_id if span.place else ""
            with bound_contextvars(trace_id=trace_id):
                status = await self._told(scope, receive, send)
            route, ids = route_of(scope), _ids(scope)
            span.rename(f"{method} {route}" if route else method)
            span.note(
                {**({"http.route": route} if route else {}), **{_OF_PATH[name]: one for name, one in ids.items()}}
            )
            if status:
                span.note({"http.response.status_code": status})
            if status >= 500:
                span.fail(str(status))

    async def _told(self, scope: Scope, receive: Receive, send: Send) -> int:
        """The status that was answered; 0 where there was none."""
        began, status = perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            tell = log.info if self._at_info else log.debug
            tell(
                "request",
                method=_method(scope),
                route=route_of(scope) or "unknown",
                status=status,
                ms=round((perf_counter() - began) * 1000, 1),
                **{name.removesuffix("_id"): one for name, one in _ids(scope).items()},
            )
        return status


def route_of(scope: Scope) -> str:
    """The template of the route that answers; empty where none does."""
    if scope["path"].startswith(PEERS):
        return f"{PEERS}{{thread_id}}/{{run_id}}"
    return str(getattr(scope.get("route"), "path", ""))


def _method(scope: Scope) -> str:
    method = str(scope.get("method", "GET"))
    return method if method in _METHODS else "_OTHER"


def _ids(scope: Scope) -> dict[str, str]:
    found = cast("Mapping[str, object]", scope.get("path_params") or {})
    return {name: str(found[name]) for name in _OF_PATH if name in found}
