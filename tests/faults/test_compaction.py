"""Compactions under live writers: each operation counts once, and nothing is left out that a guest may still name."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client
from tests.support.agents import Guided
from tests.support.host import Knobs, new_thread, whole
from tests.support.proxy import TemporalProxy
from tests.support.scene import make_compaction_due, scene, until_compacted
from tests.support.waiting import until
from tests.support.writing import numbers, put, task_write, tasks

from agentvisor.core.ids import AttemptId, RunId
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.host.journal_calls import JournalCalls

pytestmark = pytest.mark.flow


async def test_compactions_under_ten_writers_leave_each_operation_once(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    knobs = Knobs(compact_events=40, fold_threshold=2_000)
    async with scene(temporal, proxy, queue, knobs=knobs) as (other, victim):

        async def write(writer: int) -> None:
            for number in range(40):
                await victim.call(thread_id, put(number, namespace=f"w{writer}"))
                await victim.call(thread_id, task_write(number, f"task-{writer}"))

        await asyncio.gather(*(write(writer) for writer in range(10)))
        thread = await whole(other.threads, thread_id)
        assert thread.compactions >= 2
        assert all(numbers(thread, f"w{writer}") == set(range(40)) for writer in range(10))
        assert all(tasks(thread, number) == {f"task-{writer}" for writer in range(10)} for number in range(40))
        assert thread.active is not None
        assert thread.active.applied_seq == 10 * 40 * 3  # a blob, a checkpoint and a write each, none twice
        assert thread.active.attempt == 1


async def test_a_state_that_is_too_large_under_a_live_guest_begins_a_fresh_attempt_that_loses_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    # Nothing may be left out under a guest that may still name it; so its attempt ends and another reads what is left.
    thread_id, agent = new_thread(), Guided()
    knobs = Knobs(compact_events=40, max_state=300_000)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=agent.guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        for number in range(8):
            await agent.now.call(put(number, size=60_000))
        agent.ready.clear()
        await make_compaction_due(other.threads, thread_id)
        await agent.ready.wait()
        await until(lambda: agent.killed == 1)
        await agent.now.call(put(8))
        agent.leave.set()
        run = await other.threads.wait_run(thread_id, run_id)
        assert run.status is RunStatus.SUCCESS
        assert [one.ending for one in run.attempts] == [Ending.HANDOVER, Ending.COMPLETED]
        thread = await whole(other.threads, thread_id)
        assert {7, 8} <= numbers(thread)
        assert not thread.failure


async def test_a_session_outlives_compactions_and_its_client_notices_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    knobs = Knobs(compact_events=80, fold_threshold=500)
    async with scene(temporal, proxy, queue, knobs=knobs) as (other, victim):
        for number in range(200):
            await victim.call(thread_id, put(number))
        thread = await whole(other.threads, thread_id)
        assert thread.compactions >= 2
        assert numbers(thread) == set(range(200))
        assert [run.attempts[-1].attempt for run in thread.runs.values()] == [1]


async def test_a_session_whose_state_had_to_be_made_smaller_is_written_through_all_the_same(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(compact_events=40, max_state=300_000)) as (other, victim):
        for number in range(8):
            await victim.call(thread_id, put(number, size=60_000))
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        await asyncio.wait_for(victim.call(thread_id, put(8, size=60_000)), 10)
        thread = await whole(other.threads, thread_id)
        assert {7, 8} <= numbers(thread)
        assert len(thread.runs) == 1


async def test_a_question_that_meets_the_compaction_is_asked_again_and_the_guest_lives(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A query that was under way is answered for the execution that it was sent to: closed. That says nothing of the
    # attempt; taken for an answer, it killed guests whenever a host asked at the wrong moment.
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(compact_events=40)) as (other, _victim):
        await other.threads.create(thread_id, {}, exist_ok=False)
        client = await Client.connect(temporal)
        old = (await client.get_workflow_handle(thread_id).describe()).run_id
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        calls = JournalCalls(client, thread_id, heartbeat_timeout=timedelta(seconds=5))
        handle_of = Client.get_workflow_handle
        monkeypatch.setattr(Client, "get_workflow_handle", lambda self, name: handle_of(self, name, run_id=old))
        assert await calls.read_attempt(AttemptId(RunId("any"), 1)) is None
