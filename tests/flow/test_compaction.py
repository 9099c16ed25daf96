"""Continue-as-new on a real server: between runs, under a live agent, by each measure; runs and waiters survive it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.waiting import until
from tests.support.writing import numbers, put, task_write, tasks

from agentvisor.core import shed
from agentvisor.core.ids import AttemptId, RunId, ThreadId
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.host import metrics
from agentvisor.host.journal_calls import JournalCalls
from agentvisor.protocol.v1 import run_pb2

pytestmark = pytest.mark.flow

ALWAYS = 10**6
"""More than any of these tests uses up."""


@pytest.fixture
def queue() -> str:
    return f"q-{uuid4().hex[:8]}"


@asynccontextmanager
async def host_with(temporal: str, queue: str, guests: ScriptedGuests, **knobs: float) -> AsyncGenerator[EngineHost]:
    async with engine_host(temporal, queue, knobs=Knobs(**knobs), guests=guests) as host:  # type: ignore[arg-type]
        yield host


async def finished(host: EngineHost, thread_id: ThreadId, run_id: RunId) -> RunStatus:
    return (await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 60)).status


def compactions(guest: str) -> float:
    return metrics.COMPACTIONS.labels(guest)._value.get()


async def writes_one(agent: ScriptedAgent) -> None:
    await agent.call(put(int(time.time() * 1000)))


class Writer:
    """An agent that writes checkpoint after checkpoint until it is told to stop; counts how often it was started."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.started = 0
        self.acknowledged = 0
        self.longest_gap = 0.0

    async def run(self, agent: ScriptedAgent) -> None:
        self.started += 1
        for number in range(self.most):
            before = time.perf_counter()
            await agent.call(put(number))
            self.acknowledged = number + 1
            self.longest_gap = max(self.longest_gap, time.perf_counter() - before)


# --- when ----------------------------------------------------------------------------------------------------------


async def test_between_runs_half_of_the_events_is_enough(temporal: str, queue: str) -> None:
    thread_id, before = new_thread(), compactions("idle")
    async with host_with(temporal, queue, ScriptedGuests(agent=writes_one), compact_events=100) as host:
        events = list[int]()
        for _ in range(12):
            run_id = await host.start_run(thread_id, "agent")
            assert await finished(host, thread_id, run_id) is RunStatus.SUCCESS
            events.append((await host.client.get_workflow_handle(thread_id).describe()).history_length)
        thread = await whole(host.threads, thread_id)
        assert thread.compactions >= 1
        assert max(events) < 50 + 20  # what one run adds comes on top
        assert [run.status for run in thread.runs.values()] == [RunStatus.SUCCESS] * 12
        assert len(numbers(thread)) == 12
        assert compactions("idle") - before == thread.compactions


async def test_under_a_live_agent_the_agent_goes_on_undisturbed(temporal: str, queue: str) -> None:
    thread_id, writer, before = new_thread(), Writer(200), compactions("live")
    guests = ScriptedGuests(agent=writer.run)
    async with host_with(temporal, queue, guests, compact_events=120, fold_threshold=0) as host:
        run_id = await host.start_run(thread_id, "agent")
        assert await finished(host, thread_id, run_id) is RunStatus.SUCCESS
        thread = await whole(host.threads, thread_id)
        assert thread.compactions >= 3
        assert writer.started == 1
        assert [one.ending for one in thread.runs[run_id].attempts] == [Ending.COMPLETED]
        assert numbers(thread) == set(range(200))
        assert compactions("live") - before >= 3
        print(f"longest gap between two acknowledged writes: {writer.longest_gap * 1000:.0f} ms")
        assert writer.longest_gap < 5


@pytest.mark.parametrize(
    "measure", [{"compact_signals": 30, "fold_threshold": 0}, {"compact_bytes": 40_000, "fold_threshold": 2_000}]
)
async def test_signals_and_bytes_count_as_events_do(temporal: str, queue: str, measure: dict[str, int]) -> None:
    thread_id, writer = new_thread(), Writer(150)
    guests = ScriptedGuests(agent=writer.run)
    async with host_with(temporal, queue, guests, compact_events=ALWAYS, **measure) as host:
        run_id = await host.start_run(thread_id, "agent")
        assert await finished(host, thread_id, run_id) is RunStatus.SUCCESS
        thread = await whole(host.threads, thread_id)
        assert thread.compactions >= 1
        assert writer.started == 1
        assert numbers(thread) == set(range(150))


async def test_updates_count_too(temporal: str, queue: str) -> None:
    thread_id = new_thread()
    guests = ScriptedGuests(agent=writes_one)
    async with host_with(temporal, queue, guests, compact_events=ALWAYS, compact_updates=20) as host:
        await finished(host, thread_id, await host.start_run(thread_id, "agent"))
        await make_compaction_due(host.threads, thread_id, events=4 * 12)
        await until_compacted(host.threads, thread_id)


@pytest.mark.slow
async def test_more_updates_and_signals_than_temporal_allows_an_execution(temporal: str, queue: str) -> None:
    thread_id = new_thread()
    async with host_with(temporal, queue, ScriptedGuests(agent=writes_one)) as host:
        await finished(host, thread_id, await host.start_run(thread_id, "agent"))
        for batch in range(270):
            await asyncio.gather(*(host.threads.update_metadata(thread_id, {f"k{one}": batch}) for one in range(8)))
        thread = await host.threads.get(thread_id)
        assert thread.compactions >= 2
        assert not thread.failure


# --- what survives -------------------------------------------------------------------------------------------------


async def test_runs_are_pruned_to_their_limit(temporal: str, queue: str) -> None:
    thread_id = new_thread()
    async with host_with(temporal, queue, ScriptedGuests(agent=writes_one), run_history=3) as host:
        ids = [await host.start_run(thread_id, "agent") for _ in range(6)]
        for run_id in ids:
            await finished(host, thread_id, run_id)
        await host.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        thread = await until_compacted(host.threads, thread_id)
        assert list(thread.runs) == ids[-3:]
        assert len(numbers(await whole(host.threads, thread_id))) == 6


async def test_a_run_that_waits_in_the_queue_is_not_lost(temporal: str, queue: str) -> None:
    thread_id, leave = new_thread(), asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(len(guests.started)))
        await leave.wait()

    guests = ScriptedGuests(agent=agent)
    async with host_with(temporal, queue, guests, compact_events=60) as host:
        first, second = [await host.start_run(thread_id, "agent") for _ in range(2)]
        await until(lambda: guests.started)
        await make_compaction_due(host.threads, thread_id, events=60)
        thread = await until_compacted(host.threads, thread_id)
        assert [run.status for run in thread.runs.values()] == [RunStatus.RUNNING, RunStatus.PENDING]
        leave.set()
        assert await finished(host, thread_id, first) is RunStatus.SUCCESS
        assert await finished(host, thread_id, second) is RunStatus.SUCCESS
        assert guests.started == [(first, 1), (second, 1)]
        assert numbers(await whole(host.threads, thread_id)) == {1, 2}


async def test_a_run_that_waits_for_its_next_attempt_is_not_lost(temporal: str, queue: str) -> None:
    thread_id = new_thread()

    async def dies_once(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))
        if self.attempt == 1:
            raise asyncio.CancelledError  # as SIGKILL would end it

    guests = ScriptedGuests(agent=dies_once)
    async with host_with(temporal, queue, guests, compact_events=60) as host:
        run_id = RunId("r-backoff")
        spec = run_pb2.RunSpec(
            run_id=run_id,
            agent="agent",
            kind=run_pb2.RUN_KIND_AGENT,
            heartbeat_timeout_ms=4_000,
            timeout_ms=60_000,
            restart=run_pb2.RestartPolicy(
                max_attempts=2, initial_backoff_ms=3_000, max_backoff_ms=3_000, max_elapsed_ms=60_000
            ),
        )
        await host.threads.start_run(thread_id, spec, create=True, thread_metadata={})
        await until(lambda: guests.started and not len(host.attempts))
        await make_compaction_due(host.threads, thread_id, events=60)
        assert await finished(host, thread_id, run_id) is RunStatus.SUCCESS
        thread = await whole(host.threads, thread_id)
        assert thread.compactions >= 1
        assert [one.ending for one in thread.runs[run_id].attempts] == [Ending.AGENT_SIGNAL, Ending.COMPLETED]
        assert numbers(thread) == {1, 2}


async def test_a_run_whose_host_is_gone_at_that_moment_is_issued_again(temporal: str, queue: str) -> None:
    # S25: the guest cannot be attached to, so a fresh attempt on another host goes on from what was acknowledged.
    thread_id, alive, leave = new_thread(), asyncio.Event(), asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))
        alive.set()
        await leave.wait()

    knobs = Knobs(compact_events=60, heartbeat_timeout=1.5)
    guests = ScriptedGuests(agent=agent)
    async with engine_host(temporal, queue, name="keeper", knobs=knobs, guests=ScriptedGuests(agent=agent)) as keeper:
        async with engine_host(temporal, queue, name="goner", knobs=knobs, guests=guests) as goner:
            while True:  # until the goner has it
                run_id = await keeper.start_run(thread_id, "agent")
                await asyncio.wait_for(alive.wait(), 20)
                if guests.started:
                    break
                leave.set()
                await finished(keeper, thread_id, run_id)
                alive.clear(), leave.clear()
                thread_id = new_thread()
            live = goner.live(thread_id)
            # The host dies in the act: it gives nothing back, answers no attach, sends no heartbeat.
            live.journal.fence()
            for task in list(goner.attempts._tasks.values()):
                task.cancel()
        await make_compaction_due(keeper.threads, thread_id, events=60)
        leave.set()
        assert await finished(keeper, thread_id, run_id) is RunStatus.SUCCESS
        thread = await whole(keeper.threads, thread_id)
        assert thread.compactions >= 1
        assert len(thread.runs[run_id].attempts) == 2
        assert numbers(thread) == {1, 2}


async def test_a_question_that_meets_the_compaction_is_asked_again_and_the_guest_lives(
    temporal: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A query that was under way is answered for the execution that it was sent to: closed. That says nothing of the
    # attempt; taken for an answer, it killed guests whenever a host asked at the wrong moment.
    thread_id, writer = new_thread(), Writer(1)
    async with host_with(temporal, queue, ScriptedGuests(agent=writer.run)) as host:
        await finished(host, thread_id, await host.start_run(thread_id, "agent"))
        old = (await host.client.get_workflow_handle(thread_id).describe()).run_id
        await host.client.get_workflow_handle(thread_id).execute_update("compact", b"", result_type=bytes)
        await until_compacted(host.threads, thread_id)
        calls = JournalCalls(host.client, thread_id, heartbeat_timeout=timedelta(seconds=5))
        handle_of = Client.get_workflow_handle
        monkeypatch.setattr(Client, "get_workflow_handle", lambda self, name: handle_of(self, name, run_id=old))
        assert await calls.read_attempt(AttemptId(RunId("any"), 1)) is None


async def test_a_compaction_that_takes_seconds_is_no_deadlock(
    temporal: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a busy machine with a thread of thousands of namespaces: the SDK would fail the task, again and again.
    thread_id, until_it_fits = new_thread(), shed.until_it_fits

    def slowly(*given: Any) -> shed.Shedding:
        end = time.perf_counter() + 3
        while time.perf_counter() < end:
            pass
        return until_it_fits(*given)

    monkeypatch.setattr(shed, "until_it_fits", slowly)
    async with host_with(temporal, queue, ScriptedGuests(agent=writes_one)) as host:
        await finished(host, thread_id, await host.start_run(thread_id, "agent"))
        handle = host.client.get_workflow_handle(thread_id)
        old = (await handle.describe()).run_id
        await handle.execute_update("compact", b"", result_type=bytes)
        await until_compacted(host.threads, thread_id)
        events = host.client.get_workflow_handle(thread_id, run_id=old).fetch_history_events()
        assert [event async for event in events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED] == []


@pytest.mark.parametrize(
    "every", [pytest.param(5, marks=pytest.mark.slow), 11, pytest.param(23, marks=pytest.mark.slow)]
)
async def test_compactions_at_every_kth_write_of_ten_threads_lose_and_double_nothing(
    temporal: str, queue: str, every: int
) -> None:
    writers = {f"agent{number}": Writer(60) for number in range(10)}

    async def write(writer: Writer, agent: ScriptedAgent) -> None:
        writer.started += 1
        for number in range(writer.most):
            await agent.call(task_write(number, "before"))
            await agent.call(put(number))
            writer.acknowledged = number + 1

    guests = ScriptedGuests(
        **{name: (lambda agent, writer=writer: write(writer, agent)) for name, writer in writers.items()}
    )
    # Ten writers at once on a busy machine: a missed heartbeat would restart a run, which is not the point here.
    knobs = {"compact_events": ALWAYS, "compact_signals": every, "fold_threshold": 0, "heartbeat_timeout": 30.0}
    async with host_with(temporal, queue, guests, **knobs) as host:
        threads = {name: new_thread() for name in writers}
        runs = {name: await host.start_run(thread_id, name) for name, thread_id in threads.items()}
        for name, run_id in runs.items():
            assert await finished(host, threads[name], run_id) is RunStatus.SUCCESS
        for name, thread_id in threads.items():
            thread = await whole(host.threads, thread_id)
            assert thread.compactions >= 60 * 2 // every // 3
            assert [one.reason for one in thread.runs[runs[name]].attempts] == ["the run completed"]
            assert writers[name].started == 1
            assert writers[name].acknowledged == 60
            assert numbers(thread) == set(range(60))
            assert all(tasks(thread, number) == {"before"} for number in range(60))
            assert thread.runs[runs[name]].attempts[-1].attempt == 1
            assert await _applied_once(host.client, thread_id)


async def _applied_once(client: Client, thread_id: ThreadId) -> bool:
    """Every execution but the last was continued, none failed."""
    description = await client.get_workflow_handle(thread_id).describe()
    return description.status is not None and description.status.name == "RUNNING"
