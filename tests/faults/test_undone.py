"""A run that is undone leaves nothing behind, and nothing of it lands later: whatever becomes of its host meanwhile."""

import asyncio

import pytest
from tests.support.agents import Guided
from tests.support.host import Knobs, engine_host, new_thread, whole
from tests.support.proxy import HEARTBEAT, TemporalProxy, heartbeat_of_the_first
from tests.support.scene import make_compaction_due, scene, until_compacted, until_no_attempt
from tests.support.waiting import until
from tests.support.writing import control_value, control_write, numbers, put, task_write, tasks

from agentvisor.core.errors import Conflict, Fenced, NotFound
from agentvisor.core.ids import RunId
from agentvisor.core.runs import CancelAction, Ending, Multitask, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus

pytestmark = pytest.mark.flow


def begun_with(thread: Thread) -> tuple[set[int], str, set[str]]:
    """What a reader sees of what a client outside has stored before any run."""
    return numbers(thread), control_value(thread, 1), tasks(thread, 1)


BEFORE = ({0, 1}, "before", {"task", "other"})
ALL_OF_IT = [put(0), put(1), control_write(1, "before"), task_write(1, "other")]
"""What stands there before the run that is undone; it writes more under the last checkpoint, and over an answer."""


async def test_what_a_lost_host_writes_after_the_rollback_counts_for_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    # Every commit is a fold: a signal, which the thread would take whoever sends it.
    knobs = Knobs(heartbeat_timeout=1.2, fold_threshold=0, session_idle=0.3)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=guided.guests) as (other, victim):
        for one in ALL_OF_IT:
            await victim.call(thread_id, one)
        await until_no_attempt(other.threads, thread_id)
        old = await other.start_run(thread_id, "agent")
        await guided.ready.wait()
        agent = guided.now
        for one in (control_write(1, "of the run"), task_write(1, "of the run"), put(2), put(3)):
            await agent.call(one)
        cut = proxy.refuse(HEARTBEAT, matches=heartbeat_of_the_first())
        new = await other.start_run(thread_id, "agent", multitask=Multitask.ROLLBACK)
        late = [asyncio.create_task(agent.call(one)) for one in (put(4), control_write(1, "late"))]
        await until(lambda: undone(other.threads, thread_id, old))
        assert begun_with(await whole(other.threads, thread_id)) == BEFORE
        cut.lift()
        for one in await asyncio.gather(*late, return_exceptions=True):
            assert isinstance(one, Fenced)
        await until(lambda: len(guided.agents) == 2)
        await guided.now.call(put(9))
        guided.leave.set()
        ended = await other.threads.wait_run(thread_id, new)
        assert ended.status is RunStatus.SUCCESS
        thread = await whole(other.threads, thread_id)
        assert numbers(thread) == {0, 1, 9}
        assert list(thread.runs) == [new]
        with pytest.raises(NotFound):
            await other.threads.get_run(thread_id, old)


async def undone(threads: object, thread_id: str, run_id: RunId) -> bool:
    thread = await threads.get(thread_id)  # type: ignore[attr-defined]
    return run_id not in thread.runs


async def test_a_run_is_undone_to_where_it_began_although_its_thread_was_compacted_under_it(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    knobs = Knobs(compact_events=40, session_idle=0.3)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=guided.guests) as (other, victim):
        for one in ALL_OF_IT:
            await victim.call(thread_id, one)
        await until_no_attempt(other.threads, thread_id)
        run_id = await other.start_run(thread_id, "agent")
        await guided.ready.wait()
        for one in (control_write(1, "of the run"), task_write(1, "of the run"), put(2)):
            await guided.now.call(one)
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        await guided.now.call(put(3))
        await guided.now.call(control_write(1, "again"))
        assert control_value(await whole(other.threads, thread_id), 1) == "again"
        await other.threads.cancel_run(thread_id, run_id, CancelAction.ROLLBACK)
        guided.leave.set()
        await other.threads.until_gone(thread_id, run_id)
        thread = await whole(other.threads, thread_id)
        assert begun_with(thread) == BEFORE
        assert thread.runs == {}


async def test_a_rollback_that_was_accepted_during_a_compaction_holds(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=Knobs(compact_events=40), guests=guided.guests) as (other, _):
        run_id = await other.start_run(thread_id, "agent")
        await guided.ready.wait()
        await guided.now.call(put(0))
        cut = proxy.refuse(HEARTBEAT)  # its host cannot hear why it has to end
        await make_compaction_due(other.threads, thread_id)
        await other.threads.cancel_run(thread_id, run_id, CancelAction.ROLLBACK)
        cut.lift()
        guided.leave.set()
        await other.threads.until_gone(thread_id, run_id)
        assert numbers(await whole(other.threads, thread_id)) == set()


async def test_between_two_attempts_a_run_is_undone_at_once(temporal: str, queue: str) -> None:
    async def agent(script: object) -> None:
        await script.call(put(0))  # type: ignore[attr-defined]
        raise asyncio.CancelledError  # killed

    from tests.support.agents import ScriptedGuests

    thread_id = new_thread()
    async with engine_host(temporal, queue, guests=ScriptedGuests(agent=agent)) as host:
        run_id = await host.start_run(thread_id, "agent", backoff=60.0)

        async def waits() -> bool:
            run = await host.threads.get_run(thread_id, run_id)
            return [one.ending for one in run.attempts] == [Ending.AGENT_SIGNAL]

        await until(waits)
        await host.threads.cancel_run(thread_id, run_id, CancelAction.ROLLBACK)
        thread = await whole(host.threads, thread_id)
        assert (thread.runs, numbers(thread), thread.status) == ({}, set(), ThreadStatus.IDLE)


async def test_a_run_cannot_be_undone_to_what_the_history_limit_has_removed(temporal: str, queue: str) -> None:
    thread_id, guided = new_thread(), Guided()
    knobs = Knobs(checkpoint_history=3, session_idle=0.3)
    async with engine_host(temporal, queue, knobs=knobs, guests=guided.guests) as host:
        await host.call(thread_id, put(0))
        await until_no_attempt(host.threads, thread_id)
        run_id = await host.start_run(thread_id, "agent")
        await guided.ready.wait()
        for number in (1, 2, 3):
            await guided.now.call(put(number))
        # The thread hears of the last ones with the log: they count for what can be undone once they are folded.
        await make_folded(host, thread_id)
        with pytest.raises(Conflict, match="00000000 before it, which is no longer kept"):
            await host.threads.cancel_run(thread_id, run_id, CancelAction.ROLLBACK)
        with pytest.raises(Conflict, match="cannot be rolled back"):
            await host.start_run(thread_id, "agent", multitask=Multitask.ROLLBACK)
        assert (await host.threads.get_run(thread_id, run_id)).status is RunStatus.RUNNING
        await host.threads.cancel_run(thread_id, run_id)
        assert (await host.threads.wait_run(thread_id, run_id)).status is RunStatus.INTERRUPTED
        assert numbers(await whole(host.threads, thread_id)) == {1, 2, 3}


async def test_a_rollback_that_turns_out_to_be_impossible_keeps_everything_and_says_so(
    temporal: str, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    knobs = Knobs(checkpoint_history=3, session_idle=0.3, fold_quiet=30.0)
    async with engine_host(temporal, queue, knobs=knobs, guests=guided.guests) as host:
        await host.call(thread_id, put(0))
        await until_no_attempt(host.threads, thread_id)
        run_id = await host.start_run(thread_id, "agent")
        await guided.ready.wait()
        for number in (1, 2, 3):  # in the log alone: the thread does not know yet what has gone
            await guided.now.call(put(number))
        await host.threads.cancel_run(thread_id, run_id, CancelAction.ROLLBACK)
        guided.leave.set()
        with pytest.raises(Conflict, match="was to be rolled back, and could not be"):
            await host.threads.until_gone(thread_id, run_id)
        run = await host.threads.get_run(thread_id, run_id)
        assert (run.status.terminal, run.error_type) == (True, "Conflict")
        assert numbers(await whole(host.threads, thread_id)) == {1, 2, 3}


async def make_folded(host: object, thread_id: str) -> None:
    """What the live attempt has logged is in the thread's own state."""
    live = host.live(thread_id)  # type: ignore[attr-defined]
    async with live.journal._committing:
        await live.journal._fold(live.journal._token, live.journal.log.last_seq)


async def test_interrupt_leaves_what_was_done_and_the_next_goes_on_from_it(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    knobs = Knobs(heartbeat_timeout=1.2)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=guided.guests) as (other, _):
        old = await other.start_run(thread_id, "agent")
        await guided.ready.wait()
        await guided.now.call(put(0))
        queued = await other.start_run(thread_id, "agent")
        # The host is lost to the run: it never hears of the cancel.
        cut = proxy.refuse(HEARTBEAT, matches=heartbeat_of_the_first())
        new = await other.start_run(thread_id, "agent", multitask=Multitask.INTERRUPT)
        assert (await other.threads.wait_run(thread_id, queued)).attempts == []
        run = await other.threads.wait_run(thread_id, old)
        assert (run.status, [one.ending for one in run.attempts]) == (RunStatus.INTERRUPTED, [Ending.HOST_GONE])
        cut.lift()
        await until(lambda: len(guided.agents) == 2)
        await guided.now.call(put(1))
        guided.leave.set()
        assert (await other.threads.wait_run(thread_id, new)).status is RunStatus.SUCCESS
        thread = await whole(other.threads, thread_id)
        assert numbers(thread) == {0, 1}
        assert [run.status for run in thread.runs.values()] == [
            RunStatus.INTERRUPTED,
            RunStatus.INTERRUPTED,
            RunStatus.SUCCESS,
        ]


async def test_a_delayed_run_is_due_at_its_time_although_its_thread_was_compacted_meanwhile(
    temporal: str, queue: str
) -> None:
    thread_id, guided = new_thread(), Guided()
    guided.leave.set()
    async with engine_host(temporal, queue, knobs=Knobs(compact_events=40), guests=guided.guests) as host:
        later = await host.start_run(thread_id, "agent", after=6.0)
        await make_compaction_due(host.threads, thread_id)
        await until_compacted(host.threads, thread_id)
        first = await host.start_run(thread_id, "agent")
        await host.threads.wait_run(thread_id, first)
        run = await host.threads.wait_run(thread_id, later)
        assert run.status is RunStatus.SUCCESS
        assert 6_000 <= run.attempts[0].scheduled_at_ms - run.created_at_ms < 12_000
        assert [run_id for run_id, _ in guided.guests.started] == [first, later]
