"""Puts the HTTP API together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from agentvisor.host.assistants import Assistants
from agentvisor.host.callers import Callers
from agentvisor.host.codec.client import keyring_of
from agentvisor.host.config import Config
from agentvisor.host.crons import Crons
from agentvisor.host.http import (
    agent_protocol,
    assistants_graph,
    codec,
    crons,
    errors,
    event_protocol,
    interrupts,
    meta,
    metrics,
    runs,
    runs_cancel,
    state,
    state_update,
    stateless,
    storage,
    store,
    thread_state,
    thread_stream,
    threads,
    threads_copy,
    threads_file,
)
from agentvisor.host.http import assistants as assistant_routes
from agentvisor.host.http.access import LOOPBACK_ORIGIN, TRUSTED_ORIGINS, Access
from agentvisor.host.http.bodies import BoundedBodies
from agentvisor.host.http.documented import ERRORS, document
from agentvisor.host.http.heads import BoundedHeads
from agentvisor.host.http.measured import Measured
from agentvisor.host.http.services import Afterwards, Describe, Outside, Services, without_guests
from agentvisor.host.items import Items
from agentvisor.host.readiness import NotReady
from agentvisor.host.run_events import RunEvents
from agentvisor.host.streams import RunStreams
from agentvisor.host.thread_news import ThreadNews
from agentvisor.host.threads import Threads
from agentvisor.host.tracing.spans import NO_TRACING, Tracing

HEARTBEAT = 5.0
"""Seconds of silence on a stream, after which proxies would begin to wonder."""

_EXPOSED = ("content-location", "location", "x-pagination-total", "x-pagination-next", "x-export-size")


def create_app(
    door: Threads,
    streams: RunStreams,
    events: RunEvents,
    config: Config,
    *,
    outside: Outside,
    items: Items,
    assistants: Assistants,
    crons_of: Crons,
    callers: Callers,
    version: str,
    grpc_address: str | None,
    stopping: Callable[[], bool] = lambda: False,
    not_ready: Callable[[], NotReady | None] = lambda: None,
    heartbeat: float = HEARTBEAT,
    news: ThreadNews | None = None,
    describe: Describe = without_guests,
    tracing: Tracing = NO_TRACING,
) -> FastAPI:
    """The API of one host.

    Args:
        door: the way to threads.
        streams: events of the runs that live on this host, or are read here.
        events: keeps the tapes of runs that are read here fed.
        config: agents, limits.
        outside: writes into threads outside of runs.
        items: the store beside threads.
        assistants: agents with configs of their own.
        crons_of: runs by the clock.
        callers: who may call, and for whom they act.
        version: of AgentVisor.
        grpc_address: where clients outside a guest find the checkpoint store; shown by /info.
        stopping: whether the host was told to stop; shown by /ok.
        not_ready: why requests had better go to another host; shown by /readyz.
        heartbeat: seconds of silence after which a waiting client is sent a sign of life.
        news: says when a run begins on a thread; none: only of runs that are accepted here.
        describe: what an agent is, as its own code says.
        tracing: makes the spans of what is sent for a run.
    """
    afterwards = Afterwards()
    services = Services(
        threads=door,
        streams=streams,
        events=events,
        outside=outside,
        items=items,
        assistants=assistants,
        crons=crons_of,
        config=config,
        version=version,
        grpc=grpc_address,
        started_at=datetime.now(UTC),
        afterwards=afterwards,
        stopping=stopping,
        not_ready=not_ready,
        heartbeat=heartbeat,
        news=news or ThreadNews(),
        describe=describe,
        tracing=tracing,
        keyring=keyring_of(config.encryption),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with afterwards.running(), services.news.asking():
            yield

    app = FastAPI(
        title="AgentVisor",
        version=version,
        description="Durable threads and runs of agents: the API of the LangGraph server.",
        lifespan=lifespan,
        responses=ERRORS,
    )
    app.state.services = services
    errors.install(app)
    routes = (
        meta,
        metrics,
        codec,
        assistant_routes,
        assistants_graph,
        threads,
        threads_copy,
        threads_file,
        storage,
        state,
        state_update,
        thread_state,
        thread_stream,
        runs,
        runs_cancel,
        stateless,
        crons,
        agent_protocol,
        interrupts,
        event_protocol,
        store,
    )
    for one in routes:
        app.include_router(one.router)
    document(app)
    _guard(app, config, callers)
    return app


def _guard(app: FastAPI, config: Config, callers: Callers) -> None:
    """What stands before the routes; the last that is added is met first."""
    origins = config.http.cors_origins
    pages = origins or ([] if callers.must_show else [*TRUSTED_ORIGINS])
    patience = config.http.read_timeout.total_seconds()
    limits = {"max_body": config.http.max_body, "max_import": config.http.max_import}
    app.add_middleware(BoundedBodies, **limits, read_timeout=patience)
    app.add_middleware(Access, callers=callers, origins=pages)
    app.add_middleware(BoundedHeads, max_url=config.http.max_url, max_headers=config.http.max_headers)
    app.add_middleware(
        CORSMiddleware,
        # With a key, a page shows the key or gets nothing; without one, only trusted pages may ask.
        allow_origins=pages or ["*"],
        allow_origin_regex=None if callers.must_show else LOOPBACK_ORIGIN,
        allow_methods=["*"],
        allow_headers=["*"],
        allow_private_network=True,
        expose_headers=_EXPOSED,
    )
    app.add_middleware(codec.CodecPages, origins=config.encryption.codec_origins)
    app.add_middleware(Measured)
