"""uvicorn inside the host's own event loop: signals are the host's business."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from agentvisor.core.errors import Unavailable
from agentvisor.host.config_http import HttpConfig
from agentvisor.host.http.connections import protocol_of

_STOP_SECONDS = 1
"""For requests that are under way; a stream is cut, so that its reader sees that it is not at its end."""


_REFUSED = "ASGI callable returned without completing handshake."
"""A WebSocket was refused with a response (errors.refuse)."""
_CUT = "Cancel %s running task(s), timeout graceful shutdown exceeded"
"""The host stops, and ends the streams that are open..."""


def _is_news(record: logging.LogRecord) -> bool:
    """Not what uvicorn takes for a fault of the app."""
    error = record.exc_info[1] if record.exc_info else None
    # ...each of which says so.
    return record.msg not in (_REFUSED, _CUT) and not isinstance(error, asyncio.CancelledError)


class _Server(uvicorn.Server):
    """Leaves SIGINT and SIGTERM to the composition root, which takes the host apart in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(app: ASGIApp, http: HttpConfig) -> AsyncGenerator[None]:
    """Accept requests while the context lasts; open streams are ended at its end."""
    host, port = http.host, http.port
    protocol, incomplete = protocol_of(http)
    settings = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="websockets-sansio",
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_keep_alive=math.ceil(http.keep_alive.total_seconds()),
        http=protocol,
        h11_max_incomplete_event_size=incomplete,
        ws_max_size=http.max_body,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = _Server(settings)
    task = asyncio.create_task(_serve(server, host, port), name="http")
    while not server.started:
        if task.done():
            await task
            raise Unavailable(f"HTTP did not start on {host}:{port}; the log says why")
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task], timeout=_STOP_SECONDS + 2)
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _serve(server: uvicorn.Server, host: str, port: int) -> None:
    """Uvicorn ends the whole program where it cannot listen: that would leave a host behind that is half there."""
    try:
        await server.serve()
    except SystemExit as error:
        reason = error.__context__ or f"uvicorn ended with {error.code}"
        raise Unavailable(
            f"HTTP cannot listen on {host}:{port}: {reason}; choose another: --host and --port, or http.host and "
            "http.port in agentvisor.yaml"
        ) from error
