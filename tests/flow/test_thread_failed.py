"""A state that cannot fit ends the thread loudly: it is read, exported and deleted, and takes no more runs."""

import asyncio
from uuid import uuid4

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.scene import make_compaction_due
from tests.support.waiting import until
from tests.support.writing import numbers, put, task_write, tasks

from agentvisor.core.errors import NotFound, ThreadFailed
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import RunStatus
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host import metrics

pytestmark = pytest.mark.flow

# A compaction carries less than the door lets in, as after an operator lowered storage.max_state.
KNOBS = Knobs(compact_events=60, compaction_bytes=40_000)
NUMBERED = {"number": 0}
"""Metadata that `make_compaction_due` changes: in a full thread it may not grow."""


@pytest.fixture
def queue() -> str:
    return f"q-{uuid4().hex[:8]}"


async def until_failed(host: EngineHost, thread_id: ThreadId) -> Thread:
    async def failed() -> bool:
        return bool((await host.threads.get(thread_id)).failure)

    await until(failed)
    return await host.threads.get(thread_id)


async def writes_much(agent: ScriptedAgent) -> None:
    for number in range(3):
        await agent.call(put(number, size=20_000 * number + 100))
        await agent.call(task_write(number, "task"))
    await agent.call(put(3, size=60_000))


async def test_a_thread_that_cannot_fit_says_so_and_is_still_read_and_deleted(temporal: str, queue: str) -> None:
    thread_id, before = new_thread(), metrics.FAILED_THREADS.labels("state_too_large")._value.get()
    async with engine_host(temporal, queue, knobs=KNOBS, guests=ScriptedGuests(agent=writes_much)) as host:
        await host.threads.create(thread_id, NUMBERED, exist_ok=False)
        run_id = await host.start_run(thread_id, "agent")
        await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 20)
        seen = await whole(host.threads, thread_id)
        await make_compaction_due(host.threads, thread_id, events=60)
        thread = await until_failed(host, thread_id)
        assert thread.status is ThreadStatus.ERROR
        assert "limit is 40000 (storage.max_state)" in thread.failure
        assert int(thread.failure.partition(" has ")[2].split()[0]) > 60_000
        assert metrics.FAILED_THREADS.labels("state_too_large")._value.get() == before + 1
        # Nothing of it was left out in vain.
        left = await whole(host.threads, thread_id)
        assert numbers(left) == numbers(seen) == {0, 1, 2, 3}
        assert tasks(left, 2) == {"task"}
        assert left.runs[run_id].status is RunStatus.SUCCESS
        with pytest.raises(ThreadFailed, match=r"takes no runs.*limit is 40000"):
            await host.start_run(thread_id, "agent")

        async def found() -> bool:
            return thread_id in await host.threads.search(metadata={}, status="error", ids=None, limit=100, offset=0)

        await until(found)
        await host.threads.delete(thread_id)
        with pytest.raises(NotFound):
            await host.threads.get(thread_id)


async def test_a_live_run_and_those_that_wait_end_with_that_error(temporal: str, queue: str) -> None:
    thread_id = new_thread()
    started = asyncio.Event()

    async def stays(agent: ScriptedAgent) -> None:
        await writes_much(agent)
        started.set()
        await asyncio.Event().wait()

    guests = ScriptedGuests(agent=stays)
    async with engine_host(temporal, queue, knobs=KNOBS, guests=guests) as host:
        await host.threads.create(thread_id, NUMBERED, exist_ok=False)
        live, waiting = [await host.start_run(thread_id, "agent") for _ in range(2)]
        await asyncio.wait_for(started.wait(), 20)
        await make_compaction_due(host.threads, thread_id, events=80)
        await until_failed(host, thread_id)
        for run_id in (live, waiting):
            run = await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 20)
            assert run.status is RunStatus.ERROR
            assert run.error_type == "StateTooLarge"
            assert "storage.max_state" in run.error_message
        await until(lambda: not len(host.attempts))  # the guest was fenced and has ended
        assert numbers(await whole(host.threads, thread_id)) == {0, 1, 2, 3}
