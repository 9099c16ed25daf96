"""FENCE, CURRENT, DEDUP and KEEPFOLDLOG: what a fold may acknowledge, and which folds count."""

import asyncio

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, new_thread, whole
from tests.support.proxy import HEARTBEAT, SIGNAL, TemporalProxy, heartbeat_of
from tests.support.scene import scene, until_no_attempt
from tests.support.waiting import until
from tests.support.writing import control_value, control_write, numbers, put, task_write, tasks

from agentvisor.core import thread as core_thread
from agentvisor.core.errors import Fenced
from agentvisor.core.ids import AttemptId
from agentvisor.core.journal import Arrival, Stretch
from agentvisor.core.runs import RunStatus
from agentvisor.host.journal import Journal
from agentvisor.host.journal_calls import JournalCalls, Outcome
from agentvisor.host.workflow import thread as workflow
from agentvisor.host.workflow.hearing import NOTES

pytestmark = pytest.mark.flow

ALWAYS_FOLD = Knobs(fold_threshold=0)


# --- FENCE ---------------------------------------------------------------------------------------------------------


async def acknowledged_and_kept_after_the_end(temporal: str, proxy: TemporalProxy, queue: str) -> tuple[bool, bool]:
    """The attempt ends for lack of heartbeats; then an operation is folded: is it answered, and does it count?"""
    thread_id, knobs = new_thread(), Knobs(heartbeat_timeout=1.2, fold_threshold=0)
    async with scene(temporal, proxy, queue, knobs=knobs) as (other, victim):
        await victim.call(thread_id, put(0))
        store = victim.live(thread_id).store.result()
        silence = proxy.refuse(HEARTBEAT)
        await until_no_attempt(other.threads, thread_id)
        folds = proxy.seen[SIGNAL]
        late = asyncio.create_task(store.call(put(1)))
        await until(lambda: proxy.seen[SIGNAL] > folds)
        beats = proxy.seen[HEARTBEAT]
        await until(lambda: late.done() or proxy.seen[HEARTBEAT] > beats + 1)
        silence.lift()
        try:
            await late
            answered = True
        except Fenced:
            answered = False
        return answered, 1 in numbers(await whole(other.threads, thread_id))


async def test_fence_a_fold_by_an_attempt_that_has_ended_is_not_acknowledged(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await acknowledged_and_kept_after_the_end(temporal, proxy, queue) == (False, False)


async def test_fence_without_the_rule_an_operation_is_acknowledged_that_does_not_count(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = Journal._fold

    async def fold_and_answer(self: Journal, token: bytes, up_to: int) -> bool:
        done = await fold(self, token, up_to)
        if done:
            self._acknowledge(self.log.first_seq - 1, self._loop.time(), self.log.size)
        return done

    monkeypatch.setattr(Journal, "_fold", fold_and_answer)
    assert await acknowledged_and_kept_after_the_end(temporal, proxy, queue) == (True, False)


# --- CURRENT -------------------------------------------------------------------------------------------------------


async def value_after_a_fold_of_the_predecessor(temporal: str, proxy: TemporalProxy, queue: str) -> str:
    """A fold is held back and lands while the next attempt writes the same: whose value is there then?"""
    thread_id = new_thread()
    taken_over, landed = asyncio.Event(), asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        if self.attempt == 1:
            await self.call(put(0))
            proxy.hold(SIGNAL)
            await self.call(control_write(0, "old"))
            proxy.refuse(HEARTBEAT, matches=heartbeat_of(1))
            await asyncio.Event().wait()
        # As many operations as the first attempt had before its late fold, so that only the attempt tells them apart.
        await self.call(control_write(0, "new"))
        await self.call(task_write(0, "a"))
        taken_over.set()
        await landed.wait()

    knobs = Knobs(heartbeat_timeout=1.2, fold_threshold=0)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=ScriptedGuests(agent=agent)) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await asyncio.wait_for(taken_over.wait(), 20)
        await proxy.deliver_held()
        landed.set()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.SUCCESS
        return control_value(await whole(other.threads, thread_id), 0)


async def test_current_a_fold_of_an_earlier_attempt_is_ignored(temporal: str, proxy: TemporalProxy, queue: str) -> None:
    assert await value_after_a_fold_of_the_predecessor(temporal, proxy, queue) == "new"


async def test_current_without_the_rule_the_predecessors_late_fold_overwrites_its_successor(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def any_attempt(self: core_thread.Thread, attempt: AttemptId) -> bool:
        return self.active is not None and self.active.run_id == attempt.run_id

    monkeypatch.setattr(core_thread.Thread, "is_current", any_attempt)
    assert await value_after_a_fold_of_the_predecessor(temporal, proxy, queue) == "old"


# --- DEDUP ---------------------------------------------------------------------------------------------------------


async def value_after_a_fold_that_came_twice(temporal: str, proxy: TemporalProxy, queue: str) -> str:
    """A fold of unknown outcome is sent again and overtaken; then the first one lands."""
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=ALWAYS_FOLD) as (other, victim):
        await victim.call(thread_id, put(0))
        held = proxy.hold(SIGNAL)
        await victim.call(thread_id, control_write(0, "old"))
        await victim.call(thread_id, control_write(0, "new"))
        assert held.caught == 1
        assert [code.name for code in await proxy.deliver_held()] == ["OK"]
        thread = await whole(other.threads, thread_id)
        assert not thread.failure
        return control_value(thread, 0)


async def test_dedup_a_fold_that_lands_twice_is_applied_once(temporal: str, proxy: TemporalProxy, queue: str) -> None:
    assert await value_after_a_fold_that_came_twice(temporal, proxy, queue) == "new"


async def test_dedup_without_the_rule_the_second_landing_takes_back_a_newer_operation(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything(applied: int, stretch: Stretch) -> Arrival:
        return Arrival(stretch.entries, applied + 1, gap=False)

    monkeypatch.setattr(workflow, "arrival", everything)
    assert await value_after_a_fold_that_came_twice(temporal, proxy, queue) == "old"


async def test_dedup_a_fold_that_the_line_sends_twice_at_once_is_applied_once(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=ALWAYS_FOLD) as (other, victim):
        doubled = proxy.twice(SIGNAL, times=3)
        for number in range(4):
            await victim.call(thread_id, put(number))
        thread = await whole(other.threads, thread_id)
        assert doubled.caught == 3
        assert thread.active is not None
        assert thread.active.applied_seq == 8  # a blob and a checkpoint each
        assert numbers(thread) == {0, 1, 2, 3}


# --- KEEPFOLDLOG ---------------------------------------------------------------------------------------------------


async def state_after_folds_that_never_came(temporal: str, proxy: TemporalProxy, queue: str) -> tuple[str, set[int]]:
    """Folds are lost on the way; the failure of the thread, and what is missing of what was acknowledged."""
    thread_id, acknowledged = new_thread(), set[int]()
    async with scene(temporal, proxy, queue, knobs=ALWAYS_FOLD) as (other, victim):
        await victim.call(thread_id, put(0))
        store = victim.live(thread_id).store.result()
        for number in range(1, 4):
            if number < 3:
                proxy.refuse(SIGNAL, times=1)
            await store.call(put(number))
            acknowledged.add(number)
        thread = await other.threads.read(thread_id)
        return thread.failure, acknowledged - numbers(thread)


async def test_keepfoldlog_a_fold_that_never_came_is_sent_again_with_all_that_it_held(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await state_after_folds_that_never_came(temporal, proxy, queue) == ("", set())


async def test_keepfoldlog_without_the_rule_there_is_a_gap_and_the_thread_says_so(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = JournalCalls.fold

    async def trusting(self: JournalCalls, log: bytes) -> Outcome:
        outcome = await fold(self, log)
        return Outcome.DONE if outcome is Outcome.UNKNOWN else outcome

    monkeypatch.setattr(JournalCalls, "fold", trusting)
    logged: list[tuple[str, str]] = []
    with NOTES.listening(lambda _, event, fields: logged.append((event, fields["error"]))):
        failure, missing = await state_after_folds_that_never_came(temporal, proxy, queue)
    assert "journal gap" in failure
    assert missing
    # It is what the alert on failed threads says where to look for.
    assert logged == [("thread_failed", failure)]


async def test_keepfoldlog_later_tasks_join_a_fold_that_is_sent_again(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=ALWAYS_FOLD) as (other, victim):
        await victim.call(thread_id, put(0))
        refused = proxy.refuse(SIGNAL, times=2)
        names = [f"task-{number}" for number in range(20)]
        await asyncio.gather(*(victim.call(thread_id, task_write(0, one)) for one in names))
        assert refused.caught == 2
        assert tasks(await whole(other.threads, thread_id), 0) == set(names)
