"""A host's engine in the process of the test: threads, journals, sessions, workers; no HTTP, no guests."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import cast
from uuid import uuid4

from temporalio.client import Client
from temporalio.worker import Worker
from tests.support.agents import ScriptedGuests

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Multitask, RunKind
from agentvisor.core.thread import Settings, Thread
from agentvisor.host.attempt_services import AttemptServices
from agentvisor.host.capacity import RunCapacity
from agentvisor.host.codec.client import data_converter_of, terms_of
from agentvisor.host.config_encryption import EncryptionConfig
from agentvisor.host.door import StoreLimits
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.guests import Guests
from agentvisor.host.journal import JournalSettings
from agentvisor.host.live_attempt import LiveAttempt
from agentvisor.host.run_activity import Attempts
from agentvisor.host.run_events import RunEvents
from agentvisor.host.sessions import Sessions
from agentvisor.host.streams import RunStreams
from agentvisor.host.temporal_client import connect
from agentvisor.host.threads import ThreadDefaults, Threads
from agentvisor.host.threads_read import ThreadReader
from agentvisor.host.worker import workers, workflow_runner
from agentvisor.host.workflow.thread import ThreadWorkflow
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.v1 import run_pb2, store_pb2

MAX_VALUE = 64 << 20
_SOON = timedelta(seconds=0.2)


@dataclass(frozen=True)
class Knobs:
    """What a test turns: times in seconds, sizes in bytes."""

    heartbeat_timeout: float = 4.0
    idle_heartbeat: float = 0.2
    fold_threshold: int = 24_576
    fold_quiet: float = 30.0
    fold_age: float = 60.0
    linger: float = 0.001
    session_idle: float = 60.0
    compact_events: int = 8_000
    compact_bytes: int = 16 << 20
    max_state: int = 1_800_000
    pending_writes: bool = True
    compact_signals: int = 0
    compact_updates: int = 0
    checkpoint_history: int = 0
    run_history: int = 100
    max_effects: int = 5_000
    compaction_bytes: int = 0
    """What a compaction may carry, where that is not what the door lets in (max_state)."""


@dataclass
class EngineHost:
    """One host of a task queue."""

    client: Client
    threads: Threads
    attempts: Attempts
    sessions: Sessions
    guests: ScriptedGuests
    knobs: Knobs
    name: str
    own_queue: str

    async def call(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """A client's call outside any run; an error of ours is raised."""
        reply = await self.sessions.call(thread_id, request)
        if reply.WhichOneof("kind") == "error":
            raise from_error(reply.error)
        return reply

    async def start_run(
        self,
        thread_id: ThreadId,
        agent: str,
        *,
        restarts: int = 3,
        timeout: float = 60.0,
        elapsed: float = 600.0,
        multitask: Multitask = Multitask.ENQUEUE,
        after: float = 0.0,
        webhook: str = "",
        backoff: float = 0.01,
        kind: RunKind = RunKind.AGENT,
        given: bytes = b"",
    ) -> RunId:
        """Start a run of a scripted agent; times in seconds."""
        spec = run_pb2.RunSpec(
            run_id=f"r-{uuid4().hex[:12]}",
            agent=agent,
            input=given,
            kind=run_pb2.RunKind.ValueType(kind),
            multitask_strategy=run_pb2.MultitaskStrategy.ValueType(multitask),
            after_ms=int(after * 1000),
            webhook=webhook,
            heartbeat_timeout_ms=int(self.knobs.heartbeat_timeout * 1000),
            timeout_ms=int(timeout * 1000),
            restart=run_pb2.RestartPolicy(
                max_attempts=restarts,
                initial_backoff_ms=int(backoff * 1000),
                max_backoff_ms=int(backoff * 1000),
                max_elapsed_ms=int(elapsed * 1000),
            ),
        )
        await self.threads.start_run(thread_id, spec, create=True, thread_metadata={})
        return RunId(spec.run_id)

    def live(self, thread_id: ThreadId) -> LiveAttempt:
        """The attempt of a thread that lives here: the newest, where an earlier one is still being cleared away."""
        return [one for one in self.attempts._live.values() if one.thread_id == thread_id][-1]


class Role(Enum):
    """Which tasks of the queue a host takes."""

    ALL = "all"
    WORKFLOWS = "workflows"
    """Stays up: a test can then take everything else away without waiting for workflow tasks that were lost."""
    ATTEMPTS = "attempts"


@asynccontextmanager
async def engine_host(
    address: str,
    queue: str,
    *,
    name: str = "h1",
    knobs: Knobs | None = None,
    guests: ScriptedGuests | None = None,
    role: Role = Role.ALL,
    external: ExternalStorage | None = None,
    encryption: EncryptionConfig | None = None,
) -> AsyncGenerator[EngineHost]:
    """A host that polls `queue` while the context lasts."""
    encryption = encryption or EncryptionConfig()
    terms = terms_of(encryption)
    knobs = knobs or Knobs()
    guests = guests or ScriptedGuests()
    own_queue = f"{queue}:{name}"
    client = await connect(address, "default", data_converter=data_converter_of(encryption))
    settings = Settings(
        knobs.compact_events,
        knobs.compact_bytes,
        knobs.compaction_bytes or knobs.max_state,
        knobs.checkpoint_history,
        knobs.run_history,
        knobs.compact_signals,
        knobs.compact_updates,
    )
    defaults = ThreadDefaults(queue, knobs.pending_writes, settings, 1_500_000, MAX_VALUE)
    threads = Threads(client, defaults, external, terms=terms)
    streams = RunStreams()
    services = AttemptServices(
        reader=ThreadReader(client),
        guests=cast("Guests", guests),
        streams=streams,
        events=RunEvents(threads, streams),
        limits=StoreLimits(1_500_000, MAX_VALUE, knobs.max_state, max_effects=knobs.max_effects),
        stop_grace=1,
        session_idle=knobs.session_idle,
        own_queue=own_queue,
        attempt_ended=threads.attempt_ended,
        attempt_began=lambda _: None,
        external=external,
    )
    journal = JournalSettings(
        knobs.fold_threshold, knobs.fold_quiet, knobs.fold_age, knobs.linger, knobs.idle_heartbeat
    )
    live: list[Attempts] = []
    capacity = RunCapacity(100, lambda: sum(len(one) for one in live))
    attempts = Attempts(client, journal, services, host_id=name, changed=capacity.changed)
    live.append(attempts)
    heartbeat_ms = int(knobs.heartbeat_timeout * 1000)
    sessions = Sessions(
        threads,
        attempts,
        services.limits if external is None else None,
        own_queue=own_queue,
        heartbeat_timeout_ms=heartbeat_ms,
        timeout_ms=86_400_000,
    )
    if role is Role.ALL:
        polling = workers(
            client,
            attempts,
            capacity,
            task_queue=queue,
            own_queue=own_queue,
            identity=name,
            stop_grace=0.2,
            terms=terms,
        )
    elif role is Role.WORKFLOWS:
        polling = _polling(
            Worker(client, task_queue=queue, workflows=[ThreadWorkflow], workflow_runner=workflow_runner())
        )
    else:
        polling = _polling(
            *(
                Worker(client, task_queue=one, activities=[attempts.run], graceful_shutdown_timeout=_SOON)
                for one in (queue, own_queue)
            )
        )
    async with polling:
        try:
            yield EngineHost(client, threads, attempts, sessions, guests, knobs, name, own_queue)
        finally:
            await attempts.stop(1)
            await guests.stop()
            if external is not None:
                await external.close(2)


@asynccontextmanager
async def _polling(*those: Worker) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for one in those:
            await stack.enter_async_context(one)
        yield


def new_thread() -> ThreadId:
    return ThreadId(f"t-{uuid4().hex[:12]}")


async def whole(threads: Threads, thread_id: ThreadId) -> Thread:
    """All that any reader sees of a thread, values included."""
    thread = await threads.read(thread_id)
    keys = [key for one in thread.store.all_checkpoints() for key in one.channels.values() if key is not None]
    decoded = await threads.blobs(thread_id, keys)
    missing = [key.hex()[:8] for key in keys if key not in decoded]
    assert not missing, f"values of acknowledged checkpoints are gone: {missing}"
    return thread
