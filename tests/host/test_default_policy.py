"""The page's own numbers, on Temporal's clock: its server lets a thread's minutes pass in a moment (time skipping).

Time is skipped only while no attempt is under way; of a run's time budget the host's clock is asked, not Temporal's.
"""

import asyncio
import time
from datetime import timedelta
from itertools import pairwise

import pytest
from temporalio.testing import TimeSkipper
from tests.support.agents import ScriptedAgent
from tests.support.host import EngineHost, new_thread

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Ending, Run, RunStatus
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host import live_attempt
from agentvisor.host.config_tree import Config
from agentvisor.host.http.run_create import RunCreate, spec_of
from agentvisor.host.workflow import attempt as workflow_attempt
from agentvisor.protocol.v1 import run_pb2

pytestmark = pytest.mark.flow


def by_default(**settings: object) -> run_pb2.RunSpec:
    """A run as HTTP makes it of a configuration that says nothing, or only this of the restart policy."""
    config = Config.model_validate({"temporal": {"run_restart": settings}})
    return spec_of(RunCreate(assistant_id="agent"), "agent", config)


async def dies(_agent: ScriptedAgent) -> None:
    raise asyncio.CancelledError  # a scripted agent's SIGKILL


async def started(engine: EngineHost, spec: run_pb2.RunSpec) -> tuple[ThreadId, RunId]:
    thread_id = new_thread()
    await engine.threads.start_run(thread_id, spec, create=True, thread_metadata={})
    return thread_id, RunId(spec.run_id)


async def given_up(engine: EngineHost, spec: run_pb2.RunSpec, within: timedelta) -> Run:
    """A run of an agent that dies each time, after so long on its thread's clock."""
    engine.guests.scripts["agent"] = dies
    thread_id, run_id = await started(engine, spec)
    handle = engine.client.get_workflow_handle(thread_id)
    assert await TimeSkipper(engine.client).fast_forward(handle, within)
    run = await engine.threads.wait_run(thread_id, run_id)
    assert run.status is RunStatus.ERROR
    assert {attempt.ending for attempt in run.attempts} == {Ending.AGENT_SIGNAL}
    assert (await engine.threads.get(thread_id)).status is ThreadStatus.ERROR
    return run


def waits(run: Run) -> list[float]:
    """Seconds between the end of each attempt and the next one."""
    return [(two.scheduled_at_ms - one.ended_at_ms) / 1000 for one, two in pairwise(run.attempts)]


async def test_by_default_a_run_is_restarted_three_times_after_two_four_and_eight_seconds(engine: EngineHost) -> None:
    run = await given_up(engine, by_default(), timedelta(seconds=30))
    assert waits(run) == pytest.approx([2, 4, 8], abs=1.5)


@pytest.mark.slow
async def test_waits_grow_to_half_a_minute_and_after_ten_minutes_the_run_is_given_up(engine: EngineHost) -> None:
    run = await given_up(engine, by_default(max_attempts=1000), timedelta(minutes=12))
    assert waits(run)[:6] == pytest.approx([2, 4, 8, 16, 30, 30], abs=1.5)
    assert max(waits(run)) < 32
    assert 540 <= sum(waits(run)) <= 610
    assert len(run.attempts) == pytest.approx(24, abs=2)


async def test_a_host_whose_clock_is_fast_takes_nothing_off_the_time_budget(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_attempt, "time", lambda: time.time() + 24 * 3600)

    async def takes_a_moment(_agent: ScriptedAgent) -> None:
        await asyncio.sleep(0.2)

    engine.guests.scripts["agent"] = takes_a_moment
    run = await engine.threads.wait_run(*await started(engine, by_default()))
    assert (run.status, run.error_message) == (RunStatus.SUCCESS, "")


async def test_a_host_whose_clock_is_slow_cannot_outstay_the_time_budget(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Temporal's own StartToClose stands behind the host's reckoning.
    monkeypatch.setattr(live_attempt, "time", lambda: time.time() - 3600)
    monkeypatch.setattr(workflow_attempt, "END_GRACE", timedelta(seconds=1))
    ended = asyncio.Event()

    async def never(_agent: ScriptedAgent) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    engine.guests.scripts["agent"] = never
    spec = by_default()
    assert spec.timeout_ms == 30 * 60 * 1000, "the page's 30 minutes"
    spec.timeout_ms = 1_000
    run = await engine.threads.wait_run(*await started(engine, spec))
    assert (run.status, run.error_type) == (RunStatus.TIMEOUT, "TimeBudget")
    assert [attempt.ending for attempt in run.attempts] == [Ending.TIME_BUDGET]
    await asyncio.wait_for(ended.wait(), 10)
