"""The composition root: puts a host together from its configuration, and takes it apart in order."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import structlog
from temporalio.client import Client

from agentvisor import __version__
from agentvisor.core.errors import AgentVisorError
from agentvisor.host.assistants import Assistants
from agentvisor.host.attempt_services import AttemptServices
from agentvisor.host.callers import Callers
from agentvisor.host.capacity import RunCapacity
from agentvisor.host.codec.client import keyring_of, terms_of
from agentvisor.host.codec.objects import ObjectCipher
from agentvisor.host.config import Config
from agentvisor.host.cron_activity import CronActivities
from agentvisor.host.crons import Crons
from agentvisor.host.deployment import worker_deployment
from agentvisor.host.descriptions import Descriptions
from agentvisor.host.drain import Drain
from agentvisor.host.erasing import Eraser
from agentvisor.host.expire_activity import ExpireActivity
from agentvisor.host.external import open_external
from agentvisor.host.folders import require_writable
from agentvisor.host.from_config import (
    assistant_defaults,
    item_limits,
    journal_settings,
    milliseconds,
    peer_address,
    peer_credential,
    seconds,
    shelf_defaults,
    store_limits,
    thread_defaults,
)
from agentvisor.host.guests import Guests
from agentvisor.host.http.app import create_app
from agentvisor.host.http.cron_runs import CronRuns
from agentvisor.host.http.observing import observed
from agentvisor.host.http.peer_door import PeerDoor
from agentvisor.host.http.server import serving
from agentvisor.host.http.services import services_of
from agentvisor.host.http.webhooks import Webhooks
from agentvisor.host.items import Items
from agentvisor.host.metrics import RUN_CAPACITY
from agentvisor.host.peer_feed import PeerFeed
from agentvisor.host.peers import Peers, identity_of, queue_of
from agentvisor.host.ports import Port, require_free
from agentvisor.host.readiness import NotReady, Readiness
from agentvisor.host.reload import reload_on_change
from agentvisor.host.rpc.store_service import store_server
from agentvisor.host.run_activity import Attempts
from agentvisor.host.run_events import RunEvents
from agentvisor.host.sandboxes import Sandbox
from agentvisor.host.sandboxes.process import start_process
from agentvisor.host.sessions import Sessions
from agentvisor.host.shelves import Shelves
from agentvisor.host.streams import RunStreams
from agentvisor.host.temporal_client import client_of
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.temporal_server_ready import require_search_attributes
from agentvisor.host.thread_news import ThreadNews
from agentvisor.host.threads import Threads
from agentvisor.host.threads_read import ThreadReader
from agentvisor.host.tracing.opening import traces_of
from agentvisor.host.until_signalled import until_signalled
from agentvisor.host.webhook_activity import WebhookActivity
from agentvisor.host.worker import shelf_worker, telling, upkeep, workers
from agentvisor.host.worker_metrics import measure_temporal, taking_temporals
from agentvisor.host.workflow.cron import CronWorkflow

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.host")


_STOP_PATIENCE = 30.0
"""Seconds that the end of a host may take, besides its drain and what its agents are given."""


_STORAGE_GRACE = 2.0
"""Seconds that a host which stops gives to deletions in external storage; what is left of them is swept later."""


_TAPES_GRACE = 3.0
"""Seconds that a host which has given its runs back still answers for their events; another takes them at its start."""


_WARM_SECONDS = 60.0
"""What imports may take before a host that would be warm first takes runs all the same."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host that takes runs."""

    url: str
    grpc_address: str
    host_id: str
    threads: Threads
    guests: Guests
    attempts: Attempts


@asynccontextmanager
async def running_host(
    config: Config,
    client: Client,
    *,
    drain: Drain | None = None,
    warm_first: bool = False,
    sandbox: Sandbox = start_process,
) -> AsyncGenerator[Host]:
    """A host on this Temporal: takes runs, answers HTTP and gRPC; at the end it gives its runs back.

    Args:
        config: all of it.
        client: of the cluster that holds the threads.
        drain: the time that runs have, at the end, to come to a point where nothing of them would run twice; none: no
            time.
        warm_first: take no run before the agents' processes are warm. A run that another host hands over then goes on
            at once, and does not wait for imports.
        sandbox: what starts its guests.
    """
    drain = drain or Drain(0.0)
    host_id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
    task_queue, stop_grace = config.temporal.task_queue, seconds(config.guest.stop_grace)
    own_queue = queue_of(task_queue, host_id)
    keyring, terms = keyring_of(config.encryption), terms_of(config.encryption)
    external = open_external(config.storage, ObjectCipher(keyring, client.namespace))
    shelves = Shelves(client, shelf_defaults(config))
    crons = Crons(client, shelves, task_queue)
    threads = Threads(client, thread_defaults(config), external, crons.forget_thread, terms)
    items = Items(shelves, item_limits(config))
    streams = RunStreams()
    peers = Peers(client, task_queue, host_id)
    feed = PeerFeed(peers, peer_credential(config))
    events = RunEvents(threads, streams, peers, feed)
    news = ThreadNews(threads.busy)
    limits = store_limits(config)
    deployment = worker_deployment(config.temporal.deployment)
    readiness = Readiness(
        client,
        task_queue,
        silence=seconds(config.temporal.heartbeat_timeout),
        version=deployment.version if deployment else None,
    )
    address = peer_address(config, client.service_client.config.target_host)
    _require_ports(config)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(taking_temporals())
        if external is not None:
            stack.push_async_callback(external.close, _STORAGE_GRACE)
        stack.push_async_callback(feed.close)
        tracing = await stack.enter_async_context(traces_of(config, host_id))
        guests = await stack.enter_async_context(Guests(config, sandbox))
        services = AttemptServices(
            reader=ThreadReader(client),
            guests=guests,
            streams=streams,
            events=events,
            limits=limits,
            stop_grace=stop_grace,
            drain=drain,
            session_idle=seconds(config.temporal.session_idle_timeout),
            own_queue=own_queue,
            attempt_ended=threads.attempt_ended,
            attempt_began=news.tell,
            external=external,
            tracing=tracing,
            max_output=config.storage.max_output,
            items=items.answer,
        )
        if warm_first:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WARM_SECONDS):
                    await _prewarm(guests, list(config.agents))
        attempts, capacity = _attempts(config, client, services, host_id)
        await stack.enter_async_context(
            shelf_worker(
                client, Eraser(client, shelves), task_queue=shelf_defaults(config).task_queue, deployment=deployment
            )
        )
        polling = workers(
            client,
            attempts,
            capacity,
            task_queue=task_queue,
            own_queue=own_queue,
            identity=identity_of(host_id, address),
            stop_grace=stop_grace,
            terms=terms,
            deployment=deployment,
        )
        stop_taking = await stack.enter_async_context(polling)
        sessions = Sessions(
            threads,
            attempts,
            None if external else limits,
            own_queue=own_queue,
            heartbeat_timeout_ms=milliseconds(config.temporal.heartbeat_timeout),
            timeout_ms=milliseconds(timedelta(days=1)),
            items=items.answer,
        )
        callers = Callers(config.http)
        stack.push_async_callback(callers.close)
        grpc_address = await stack.enter_async_context(
            store_server(sessions.of, config.grpc.host, config.grpc.port, callers, drain.begun.is_set)
        )
        descriptions = Descriptions(guests, config)
        stack.push_async_callback(descriptions.stop)
        app = create_app(
            threads,
            streams,
            events,
            config,
            outside=sessions,
            items=items,
            assistants=Assistants(shelves, assistant_defaults(config)),
            crons_of=crons,
            callers=callers,
            version=__version__,
            grpc_address=grpc_address,
            stopping=drain.begun.is_set,
            not_ready=lambda: NotReady.STOPPING if drain.asked or drain.begun.is_set() else readiness.reason(),
            news=news,
            describe=descriptions.describe,
            tracing=tracing,
        )
        webhooks = WebhookActivity(Webhooks(services_of(app)).tell)
        await stack.enter_async_context(
            telling(client, webhooks.run, task_queue=task_queue, stop_grace=stop_grace, deployment=deployment)
        )
        of_host = services_of(app)
        expiring, cron_runs = ExpireActivity(of_host.threads.erase_expired, of_host.prune), CronRuns(of_host)
        of_crons = CronActivities(crons, cron_runs.start, cron_runs.release, tracing)
        activities = [expiring.run, of_crons.fire, of_crons.release]
        await stack.enter_async_context(
            upkeep(
                client,
                activities,
                [CronWorkflow],
                task_queue=task_queue,
                stop_grace=stop_grace,
                deployment=deployment,
            )
        )
        door = PeerDoor(app, streams, peer_credential(config), host_id, address)
        await stack.enter_async_context(readiness.watching())
        await stack.enter_async_context(serving(observed(door, tracing, config.log), config.http))
        warming = asyncio.create_task(_prewarm(guests, list(config.agents)), name="prewarm")
        stack.push_async_callback(_cancelled, warming)
        repairing = asyncio.create_task(crons.repair(), name="repair crons")
        stack.push_async_callback(_cancelled, repairing)
        url = f"http://{config.http.host}:{config.http.port}"
        _settle()
        stack.push_async_callback(_until_taken, streams, peers, drain)
        log.info("host_started", url=url, version=__version__, host=host_id, agents=sorted(config.agents))
        # First of all at the end: clients are answered, and runs' tokens taken, until the last run was given back.
        stack.push_async_callback(_give_back, attempts, stop_taking, 2 * stop_grace + 2)
        yield Host(url, grpc_address, host_id, threads, guests, attempts)


async def _give_back(attempts: Attempts, stop_taking: Callable[[], Awaitable[None]], grace: float) -> None:
    """Hand every run over, and take no other."""
    log.info("host_stopping", runs=len(attempts))
    async with asyncio.TaskGroup() as both:
        both.create_task(_awaited(stop_taking))
        both.create_task(attempts.stop(grace))


async def _until_taken(streams: RunStreams, peers: Peers, drain: Drain) -> None:
    """Let the hosts that go on with this one's runs have what their readers may not have seen."""
    if drain.seconds and await peers.any_other():
        with suppress(TimeoutError):
            async with asyncio.timeout(_TAPES_GRACE):
                await streams.until_taken()


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def _require_ports(config: Config) -> None:
    """Before anything starts: a host that is half there would have to be taken apart again."""
    require_free(config.http.host, Port(config.http.port, "HTTP", "--port", "http.port"))
    if config.grpc.port:
        require_free(config.grpc.host, Port(config.grpc.port, "gRPC", None, "grpc.port"))


async def _prewarm(guests: Guests, agents: list[str]) -> None:
    """Have a guest ready for each agent, one after the other; runs are accepted meanwhile, and start their own."""
    for agent in agents:
        try:
            await guests.prewarm(agent)
        except AgentVisorError as error:
            log.warning("prewarm_failed", agent=agent, error=error.message)


def _attempts(config: Config, client: Client, services: AttemptServices, host_id: str) -> tuple[Attempts, RunCapacity]:
    live: list[Attempts] = []
    RUN_CAPACITY.set(config.guest.max_live_runs)
    capacity = RunCapacity(config.guest.max_live_runs, lambda: sum(len(one) for one in live))
    attempts = Attempts(client, journal_settings(config), services, host_id=host_id, changed=capacity.changed)
    live.append(attempts)
    return attempts, capacity


def run_dev(config: Config, *, reload: bool, ready: Callable[[str], None], sandbox: Sandbox = start_process) -> None:
    """A host with the embedded Temporal server (or the one that is configured), until SIGINT or SIGTERM."""
    drain = Drain(0.0)
    measure_temporal(config.temporal.task_queue)
    work = _dev(config, drain, reload=reload, ready=ready, sandbox=sandbox)
    asyncio.run(until_signalled(work, drain, _patience(config)))


def run_serve(config: Config, *, ready: Callable[[str], None], stopping: Callable[[], None] = lambda: None) -> None:
    """A host of a Temporal cluster, until SIGINT or SIGTERM; a second one ends the drain.

    Args:
        config: all of it.
        ready: called with the host's URL once it takes runs and requests.
        stopping: called once it was told to stop, before the drain.
    """
    drain = Drain(seconds(config.temporal.drain_timeout))
    measure_temporal(config.temporal.task_queue)
    asyncio.run(until_signalled(_serve(config, drain, ready=ready), drain, _patience(config), stopping))


def _patience(config: Config) -> float:
    """How long the end of a host may take: several times what it takes where Temporal answers."""
    return _STOP_PATIENCE + 4 * seconds(config.guest.stop_grace)


async def _dev(config: Config, drain: Drain, *, reload: bool, ready: Callable[[str], None], sandbox: Sandbox) -> None:
    _require_ports(config)
    require_writable(config.dev.data_dir)
    async with AsyncExitStack() as stack:
        address = None
        if not config.temporal.is_elsewhere:
            server = EmbeddedTemporal(
                data_dir=config.dev.data_dir,
                port=config.dev.temporal_port,
                ui_port=config.dev.temporal_ui_port,
                namespace=config.temporal.namespace,
            )
            await stack.enter_async_context(server)
            address = server.address
        client = await client_of(config, address=address)
        await require_search_attributes(client)
        host = await stack.enter_async_context(running_host(config, client, drain=drain, sandbox=sandbox))
        if reload:
            watching = asyncio.create_task(reload_on_change(config, host.guests.reload))
            stack.push_async_callback(_cancelled, watching)
        ready(host.url)
        await asyncio.Event().wait()


async def _serve(config: Config, drain: Drain, *, ready: Callable[[str], None]) -> None:
    # Guests keep their sockets and workspaces there.
    require_writable(config.dev.data_dir)
    client = await client_of(config)
    await require_search_attributes(client)
    async with running_host(config, client, drain=drain, warm_first=True) as host:
        ready(host.url)
        await asyncio.Event().wait()


def _settle() -> None:
    """What a host has once it is ready stays: the collector need not look at it again in the middle of a commit."""
    gc.collect()
    gc.freeze()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
