"""The wait before a restart: by Temporal's timer where it is long, by the host where such a timer would be longer."""

import asyncio
import time
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, engine_host, new_thread
from tests.support.waiting import until

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Ending, Run, RunStatus
from agentvisor.protocol.v1 import run_pb2

pytestmark = pytest.mark.flow


class Dying:
    """An agent that is killed the first time, and completes the next."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.died = 0.0

    async def agent(self, _agent: ScriptedAgent) -> None:
        self.begun.append(time.monotonic())
        if len(self.begun) == 1:
            self.died = time.monotonic()
            raise asyncio.CancelledError


async def start(engine: EngineHost, backoff_ms: int) -> tuple[ThreadId, RunId]:
    spec = run_pb2.RunSpec(
        run_id=f"r-{uuid4().hex[:8]}",
        agent="agent",
        kind=run_pb2.RUN_KIND_AGENT,
        heartbeat_timeout_ms=4_000,
        timeout_ms=60_000,
        restart=run_pb2.RestartPolicy(
            max_attempts=3, initial_backoff_ms=backoff_ms, max_backoff_ms=backoff_ms, max_elapsed_ms=60_000
        ),
    )
    thread_id = new_thread()
    await engine.threads.start_run(thread_id, spec, create=True, thread_metadata={})
    return thread_id, RunId(spec.run_id)


async def ended(engine: EngineHost, thread_id: ThreadId, run_id: RunId) -> Run:
    return await asyncio.wait_for(engine.threads.wait_run(thread_id, run_id), 20)


async def has_timer(engine: EngineHost, thread_id: ThreadId) -> bool:
    history = await engine.client.get_workflow_handle(thread_id).fetch_history()
    return any(event.event_type == EventType.EVENT_TYPE_TIMER_STARTED for event in history.events)


@pytest.mark.parametrize("backoff_ms, timer", [(300, False), (1_200, True)])
async def test_the_next_attempt_begins_after_the_wait(engine: EngineHost, backoff_ms: int, *, timer: bool) -> None:
    dying = Dying()
    engine.guests.scripts["agent"] = dying.agent
    thread_id, run_id = await start(engine, backoff_ms)
    run = await ended(engine, thread_id, run_id)
    assert [one.ending for one in run.attempts] == [Ending.AGENT_SIGNAL, Ending.COMPLETED]
    # Counted from when the workflow heard of the death, a little later; its clock has milliseconds.
    assert dying.begun[1] - dying.died >= backoff_ms / 1000 - 0.01
    assert await has_timer(engine, thread_id) is timer


async def waiting_attempt(engine: EngineHost) -> None:
    """Until the host has the second attempt and waits."""
    await until(lambda: [one for one in engine.attempts._live.values() if one.id.attempt == 2])


async def test_a_cancel_ends_the_wait_and_no_agent_begins(engine: EngineHost) -> None:
    dying = Dying()
    engine.guests.scripts["agent"] = dying.agent
    thread_id, run_id = await start(engine, 950)
    await waiting_attempt(engine)
    await engine.threads.cancel_run(thread_id, run_id)
    run = await ended(engine, thread_id, run_id)
    assert run.status is RunStatus.INTERRUPTED
    assert [one.ending for one in run.attempts] == [Ending.AGENT_SIGNAL, Ending.CANCELLED]
    assert len(dying.begun) == 1


async def test_a_host_that_stops_gives_the_waiting_run_to_another(temporal: str) -> None:
    dying, queue = Dying(), f"q-{uuid4().hex[:8]}"
    async with engine_host(temporal, queue, name="first", guests=ScriptedGuests(agent=dying.agent)) as first:
        thread_id, run_id = await start(first, 950)
        await waiting_attempt(first)
    async with engine_host(temporal, queue, name="second", guests=ScriptedGuests(agent=dying.agent)) as second:
        run = await ended(second, thread_id, run_id)
    # In between, the stopping host of these tests may take the run up once more, and lose it.
    assert [one.ending for one in run.attempts][:2] == [Ending.AGENT_SIGNAL, Ending.HOST_STOPPED]
    assert (run.attempts[-1].ending, run.attempts[-1].host_id) == (Ending.COMPLETED, "second")
    assert len(dying.begun) == 2
