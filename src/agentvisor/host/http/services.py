"""What every route works with, and the work that goes on after a request was answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, cast

import structlog
from fastapi import Depends
from starlette.requests import Request

from agentvisor.core.errors import AgentVisorError
from agentvisor.core.ids import ThreadId
from agentvisor.host.config import Config
from agentvisor.host.items import Items
from agentvisor.host.state_changes import Call
from agentvisor.host.streams import RunStreams
from agentvisor.host.threads import Threads

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")


Prune = Callable[[ThreadId], Awaitable[None]]


class Afterwards:
    """Tasks that outlive the request that began them; they end with the app."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, what: str, work: Coroutine[object, object, object]) -> asyncio.Task[None]:
        """Do it in the background; a failure is logged."""
        task = asyncio.create_task(_logged(what, work), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Ends what is still going on at the exit."""
        try:
            yield
        finally:
            tasks = [*self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _logged(what: str, work: Coroutine[object, object, object]) -> None:
    try:
        await work
    except AgentVisorError as error:
        log.warning("afterwards_failed", what=what, error=error.message)
    except Exception:
        log.exception("afterwards_failed", what=what)


@dataclass(frozen=True, slots=True)
class Services:
    """Held by the app; routes ask for it with `Served`."""

    threads: Threads
    streams: RunStreams
    prune: Prune
    """Leaves the newest checkpoint of every namespace of a thread."""
    call: Call
    """Writes into threads on which no run is active."""
    items: Items
    """The store beside threads."""
    config: Config
    version: str
    grpc: str | None
    """Address of the gRPC end for clients outside a guest."""
    started_at: datetime
    afterwards: Afterwards
    stopping: Callable[[], bool]
    """Whether the host was told to stop, and gives its runs to others."""
    heartbeat: float
    """Seconds of silence after which a waiting client is sent a sign of life."""
    owner: str = ""
    """For whom the request acts; empty: for no owner in particular, who sees what all own."""


def _services(request: Request) -> Services:
    return cast("Services", request.app.state.services)


Served = Annotated[Services, Depends(_services)]
