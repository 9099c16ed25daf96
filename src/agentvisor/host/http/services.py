"""What every route works with, and the work that goes on after a request was answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Protocol, Self, cast

import structlog
from fastapi import Depends
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from structlog.contextvars import bind_contextvars

from agentvisor.core.errors import AgentVisorError, Internal, PermissionRefused, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.assistants import Assistants
from agentvisor.host.codec.keyring import Keyring
from agentvisor.host.config import Config
from agentvisor.host.crons import Crons
from agentvisor.host.http.stream_counts import StreamCounts
from agentvisor.host.items import Items
from agentvisor.host.readiness import NotReady
from agentvisor.host.run_events import RunEvents
from agentvisor.host.state_changes import Call
from agentvisor.host.streams import RunStreams
from agentvisor.host.thread_news import ThreadNews
from agentvisor.host.threads import Threads
from agentvisor.host.tracing.spans import NO_TRACING, Tracing
from agentvisor.protocol.v1 import store_pb2
from agentvisor.protocol.v1.guest_pb2 import Description

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")


OWNER_IN_SCOPE = "agentvisor.owner"
"""Where the check before the routes (http/access.py) says for whom a request acts."""


class Outside(Protocol):
    """Writes into threads on which no run is active (host/sessions.py)."""

    async def call(self, thread_id: ThreadId | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply: ...

    async def prune(self, thread_id: ThreadId) -> None: ...

    def of(self, owner: Owner) -> Self: ...


Prune = Callable[[ThreadId], Awaitable[None]]
Describe = Callable[[str, Description], Awaitable[bytes]]


async def without_guests(agent: str, _: Description) -> bytes:
    """Of a host that starts no agents."""
    raise Unavailable(f"this host starts no agents: ask another what {agent!r} is")


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
        log.exception("afterwards_crashed", what=what)


@dataclass(frozen=True, slots=True)
class Services:
    """What a route works with, for the caller of the request: routes ask for it with `Served`, and by no other way.

    All that it holds of threads is the caller's: another owner's thread does not exist for them.
    """

    threads: Threads
    streams: RunStreams
    events: RunEvents
    """Keeps the tape of a run that is read here fed, wherever the run lives."""
    outside: Outside
    items: Items
    """The store beside threads."""
    assistants: Assistants
    crons: Crons
    config: Config
    version: str
    grpc: str | None
    """Address of the gRPC end for clients outside a guest."""
    started_at: datetime
    afterwards: Afterwards
    stopping: Callable[[], bool]
    """Whether the host was told to stop, and gives its runs to others."""
    not_ready: Callable[[], NotReady | None]
    """Why requests had better go to another host; None: they need not."""
    heartbeat: float
    """Seconds of silence after which a waiting client is sent a sign of life."""
    stream_counts: StreamCounts = field(default_factory=StreamCounts)
    """Of all callers."""
    describe: Describe = without_guests
    """What an agent is, as its own code says (host/descriptions.py)."""
    owner: Owner = EVERYONE
    """For whom the request acts; empty: for no owner in particular, who sees what all own."""
    tracing: Tracing = NO_TRACING
    keyring: Keyring = field(default_factory=Keyring)
    """What decrypts for Temporal's UI."""
    news: ThreadNews = field(default_factory=ThreadNews)
    """Says when a run begins on a thread."""

    @property
    def prune(self) -> Prune:
        """Leaves the newest checkpoint of every namespace of a thread."""
        return self.outside.prune

    @property
    def call(self) -> Call:
        """Writes into threads on which no run is active."""
        return self.outside.call

    def of(self, owner: Owner) -> Services:
        """The same for one owner."""
        return replace(
            self,
            threads=self.threads.of(owner),
            events=self.events.of(owner),
            outside=self.outside.of(owner),
            owner=owner,
        )


async def _services(connection: HTTPConnection) -> Services:
    """Bound to the caller; a request that came by no check has none, and gets nothing.

    A coroutine: FastAPI takes plain functions to a thread, and connections would overtake each other there.
    """
    owner: Owner | None = connection.scope.get(OWNER_IN_SCOPE)
    if owner is None:
        raise Internal("nobody has checked for whom this request acts")
    _name_in_logs(connection.path_params)
    return services_of(connection.app).of(owner)


def _name_in_logs(named: Mapping[str, object]) -> None:
    """Of which thread and run the request is, in all that is logged for it."""
    bind_contextvars(**{name: str(named[f"{name}_id"]) for name in ("thread", "run") if f"{name}_id" in named})


def services_of(app: Starlette) -> Services:
    """Of an app, bound to nobody: what the host itself does."""
    return cast("Services", app.state.services)


def _operators(services: Annotated[Services, Depends(_services)]) -> Services:
    if services.owner != EVERYONE:
        raise PermissionRefused("this is the operator's: show http.operator_key")
    return services


Operated = Annotated[Services, Depends(_operators)]
"""For routes that tell of the host as a whole: an owner's key does not open them."""

Served = Annotated[Services, Depends(_services)]
