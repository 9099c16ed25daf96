"""The rules of a compaction under a live guest: what is handed over, offered again, given up, and never lost."""

import asyncio

import pytest
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse
from tests.support.agents import Guided, ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, Role, engine_host, new_thread, whole
from tests.support.proxy import CANCELED, HEARTBEAT, POLL_ACTIVITY, SIGNAL, TemporalProxy
from tests.support.scene import make_compaction_due, scene, until_compacted
from tests.support.waiting import until
from tests.support.writing import control_value, control_write, numbers, put, task_write

from agentvisor.core.runs import Ending, RunStatus
from agentvisor.protocol import threads as protocol_threads
from agentvisor.protocol.v1.run_pb2 import RunTask

pytestmark = pytest.mark.flow

SMALL = Knobs(compact_events=40)
FOLDING = Knobs(compact_events=40, fold_threshold=0)


def is_attach(reply: bytes) -> bool:
    """A poll that brings an attach task."""
    task = PollActivityTaskQueueResponse.FromString(reply)
    return bool(task.task_token) and RunTask.FromString(task.input.payloads[0].data).attach


async def test_keeplog_the_rest_of_a_handover_that_never_came_goes_with_the_next_try(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=SMALL) as (other, victim):
        await victim.call(thread_id, put(0))
        journal = victim.live(thread_id).journal
        refused = proxy.refuse(CANCELED, times=3)
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        assert refused.caught == 3
        await victim.call(thread_id, put(1))
        assert not journal.is_fenced
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


async def test_keeplog_what_was_logged_during_a_handover_counts_once_under_the_new_token(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=SMALL) as (other, victim):
        await victim.call(thread_id, put(0))
        live = victim.live(thread_id)
        refused = proxy.refuse(CANCELED)
        await make_compaction_due(other.threads, thread_id)
        await refused.until_caught()
        waiting = asyncio.create_task(live.store.result().call(put(1)))
        await asyncio.sleep(0)
        refused.lift()
        await asyncio.wait_for(waiting, 10)
        await victim.call(thread_id, put(2))
        thread = await whole(other.threads, thread_id)
        assert thread.active is not None
        assert thread.active.applied_seq == live.journal.log.last_seq == 6
        assert numbers(thread) == {0, 1, 2}


async def test_handunc_a_handover_whose_answer_was_lost_keeps_its_guest(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=SMALL, guests=agent.guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        lost = proxy.drop_reply(CANCELED)
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        await agent.now.call(put(1))
        assert lost.caught == 1
        agent.leave.set()
        run = await other.threads.wait_run(thread_id, run_id)
        assert run.status is RunStatus.SUCCESS
        assert len(run.attempts) == 1
        assert agent.killed == 0
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


async def test_oldtoken_an_answer_about_the_old_token_after_the_new_one_came_changes_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=SMALL, guests=agent.guests) as (other, victim):
        await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        late = proxy.hold_reply(CANCELED, times=2)
        journal = victim.live(thread_id).journal
        token = journal._token
        await make_compaction_due(other.threads, thread_id)
        await until(lambda: journal._token not in {None, token})
        late.released.set()
        await agent.now.call(put(1))
        assert not journal.is_fenced
        assert late.caught >= 1
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}
        agent.leave.set()


async def test_carryseq_a_fold_that_lands_after_the_compaction_is_known_to_have_been_applied(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await value_after_a_fold_across_a_compaction(temporal, proxy, queue) == "new"


async def test_carryseq_without_the_rule_the_thread_loses_count(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_message = protocol_threads._active_from_message

    def forgetful(message: protocol_threads.thread_pb2.ActiveAttempt) -> protocol_threads.Active:
        active = from_message(message)
        active.applied_seq = 0
        return active

    monkeypatch.setattr("agentvisor.host.workflow.thread.thread_from_message", _with_active(forgetful))
    assert await value_after_a_fold_across_a_compaction(temporal, proxy, queue) != "new"


def _with_active(read):
    original = protocol_threads.thread_from_message

    def thread_from_message(message: protocol_threads.thread_pb2.Thread) -> protocol_threads.Thread:
        thread = original(message)
        if message.HasField("active"):
            thread.active = read(message.active)
        return thread

    return thread_from_message


async def value_after_a_fold_across_a_compaction(temporal: str, proxy: TemporalProxy, queue: str) -> str:
    """A held fold lands in the execution after the one that it was meant for."""
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=FOLDING) as (other, victim):
        await victim.call(thread_id, put(0))
        # The first operations again, as a line that repeats itself would send them.
        held = proxy.hold(SIGNAL, times=1)
        await victim.call(thread_id, control_write(0, "old"))
        await victim.call(thread_id, control_write(0, "new"))
        assert held.caught == 1
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        await proxy.deliver_held()
        await victim.call(thread_id, task_write(0, "after"))
        thread = await whole(other.threads, thread_id)
        return thread.failure or control_value(thread, 0)


async def test_reattach_a_token_that_was_lost_on_its_way_is_offered_to_the_same_host_again(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    knobs = Knobs(heartbeat_timeout=1.2, compact_events=40)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=agent.guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        lost = proxy.drop_reply(POLL_ACTIVITY, matches=is_attach, times=2)
        await make_compaction_due(other.threads, thread_id)
        await asyncio.wait_for(agent.now.call(put(1)), 20)
        await until(lambda: lost.caught == 2)
        await asyncio.wait_for(agent.now.call(put(2)), 20)
        agent.leave.set()
        run = await other.threads.wait_run(thread_id, run_id)
        assert run.status is RunStatus.SUCCESS
        assert len(run.attempts) == 1
        assert agent.killed == 0
        assert numbers(await whole(other.threads, thread_id)) == {0, 1, 2}


async def test_attachonly_a_host_that_lost_the_guest_starts_a_new_attempt_and_no_operation_of_it_is_dropped(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=SMALL, guests=agent.guests) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        live = victim.live(thread_id)
        kept = proxy.hold_reply(POLL_ACTIVITY, matches=is_attach)
        await make_compaction_due(other.threads, thread_id)
        await kept.until_caught()
        victim.attempts._live.clear()  # as after a restart of the host under the same name
        agent.ready.clear()
        kept.released.set()
        await agent.ready.wait()
        assert agent.now.attempt == 2
        await agent.now.call(put(1))
        await until(lambda: live.journal.is_fenced)
        agent.leave.set()
        run = await other.threads.wait_run(thread_id, run_id)
        assert [one.ending for one in run.attempts] == [Ending.GUEST_GONE, Ending.COMPLETED]
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


async def test_gapkill_a_guest_without_a_token_is_killed_once_its_attempt_is_not_expected(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=SMALL, guests=agent.guests) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        journal = victim.live(thread_id).journal
        proxy.hold_reply(POLL_ACTIVITY, matches=is_attach)
        await make_compaction_due(other.threads, thread_id)
        await until(lambda: journal.waits_for_token)
        await other.threads.cancel_run(thread_id, run_id)
        # The token is on its way to nowhere; the attempt ends by its time.
        await until(lambda: agent.killed == 1)
        assert journal.is_fenced
        assert (await other.threads.wait_run(thread_id, run_id)).status is RunStatus.INTERRUPTED


async def test_notstarted_an_attempt_that_a_compaction_cancelled_before_it_started_is_scheduled_again(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, agent = new_thread(), Guided()
    agent.leave.set()
    async with engine_host(temporal, queue, name="threads", knobs=SMALL, role=Role.WORKFLOWS) as other:
        run_id = await other.start_run(thread_id, "agent")
        await make_compaction_due(other.threads, thread_id)
        await until_compacted(other.threads, thread_id)
        async with engine_host(temporal, queue, name="late", knobs=SMALL, role=Role.ATTEMPTS, guests=agent.guests):
            run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
    assert run.status is RunStatus.SUCCESS
    assert [one.ending for one in run.attempts][-1] is Ending.COMPLETED
    assert {one.ending for one in run.attempts[:-1]} <= {Ending.NOT_STARTED}


async def test_waitcancel_what_an_agent_writes_between_the_cancel_and_its_end_counts(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        await self.cancelled.wait()
        for number in range(1, 6):
            await self.call(put(number))

    async with scene(temporal, proxy, queue, guests=ScriptedGuests(agent=agent)) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        await until(lambda: proxy.seen[HEARTBEAT] > 2)
        await other.threads.cancel_run(thread_id, run_id)
        run = await other.threads.wait_run(thread_id, run_id)
        assert len(run.attempts) == 1
        assert len(victim.guests.started) == 1
        assert numbers(await whole(other.threads, thread_id)) == set(range(6))


async def test_an_agent_that_completes_during_a_handover_has_completed(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    # The hand-over used to be cancelled halfway: the token was gone, and the result with it.
    thread_id, agent = new_thread(), Guided()
    async with scene(temporal, proxy, queue, knobs=SMALL, guests=agent.guests) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        await agent.ready.wait()
        await agent.now.call(put(0))
        journal = victim.live(thread_id).journal
        refused = proxy.refuse(CANCELED)
        await make_compaction_due(other.threads, thread_id)
        await refused.until_caught()
        agent.leave.set()
        await until(lambda: journal.is_closing)
        refused.lift()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.SUCCESS
        assert len(run.attempts) == 1
        assert (await whole(other.threads, thread_id)).compactions == 1
