"""uvicorn inside the host's own event loop: signals are the host's business."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

_STOP_SECONDS = 3


class _Server(uvicorn.Server):
    """Leaves SIGINT and SIGTERM to the composition root, which takes the host apart in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(app: FastAPI, host: str, port: int) -> AsyncGenerator[None]:
    """Accept requests while the context lasts; open streams are ended at its end."""
    settings = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = _Server(settings)
    task = asyncio.create_task(server.serve(), name="http")
    while not server.started:
        if task.done():
            await task
            raise RuntimeError(f"the HTTP server did not start on {host}:{port}")
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task], timeout=_STOP_SECONDS + 2)
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
