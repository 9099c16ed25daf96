"""CANCARRY and CANCELKEEP: an accepted cancel holds, whatever ends the attempt."""

import asyncio

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, new_thread, whole
from tests.support.proxy import CANCELED, HEARTBEAT, TemporalProxy, heartbeat_of
from tests.support.scene import make_compaction_due, scene, until_compacted
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.errors import NotFound
from agentvisor.core.runs import Ending, RunStatus

pytestmark = pytest.mark.flow


async def stays(agent: ScriptedAgent) -> None:
    """Writes once and stays until it is killed."""
    await agent.call(put(agent.attempt))
    await asyncio.Event().wait()


async def test_cancarry_a_cancel_that_was_accepted_during_a_handover_ends_the_run(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guests = new_thread(), ScriptedGuests(agent=stays)
    async with scene(temporal, proxy, queue, knobs=Knobs(compact_events=40), guests=guests) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        await until(lambda: proxy.seen[HEARTBEAT] > 1)
        # The host has asked why, has heard "compaction", and cannot report.
        refused = proxy.refuse(CANCELED)
        await make_compaction_due(other.threads, thread_id)
        await refused.until_caught()
        journal = victim.live(thread_id).journal
        await other.threads.cancel_run(thread_id, run_id)
        refused.lift()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.INTERRUPTED
        assert [one.ending for one in run.attempts] == [Ending.HANDOVER]
        await until(lambda: journal.is_fenced)
        await until_compacted(other.threads, thread_id)
        assert guests.started == [(run_id, 1)]
        assert numbers(await whole(other.threads, thread_id)) == {1}


async def test_cancelkeep_no_attempt_follows_an_accepted_cancel_although_the_host_was_lost(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guests = new_thread(), ScriptedGuests(agent=stays)
    async with scene(temporal, proxy, queue, knobs=Knobs(heartbeat_timeout=1.2), guests=guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await until(lambda: proxy.seen[HEARTBEAT] > 1)
        proxy.refuse(HEARTBEAT, matches=heartbeat_of(1))
        await other.threads.cancel_run(thread_id, run_id)
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.INTERRUPTED
        assert [one.ending for one in run.attempts] == [Ending.HOST_GONE]
        assert guests.started == [(run_id, 1)]


async def test_without_a_cancel_the_run_of_a_lost_host_is_tried_again(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(self.attempt))
        if self.attempt == 1:
            proxy.refuse(HEARTBEAT, matches=heartbeat_of(1))
            await asyncio.Event().wait()

    guests = ScriptedGuests(agent=agent)
    async with scene(temporal, proxy, queue, knobs=Knobs(heartbeat_timeout=1.2), guests=guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.SUCCESS
        assert [one.ending for one in run.attempts] == [Ending.HOST_GONE, Ending.COMPLETED]
        assert numbers(await whole(other.threads, thread_id)) == {1, 2}


async def test_a_run_that_waits_for_its_turn_or_its_restart_is_cancelled_at_once(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guests = new_thread(), ScriptedGuests(agent=stays)
    async with scene(temporal, proxy, queue, guests=guests) as (other, _victim):
        first = await other.start_run(thread_id, "agent")
        second = await other.start_run(thread_id, "agent")
        assert (await other.threads.cancel_run(thread_id, second)).status is RunStatus.INTERRUPTED
        with pytest.raises(NotFound, match="already interrupted"):
            await other.threads.cancel_run(thread_id, second)
        await other.threads.cancel_run(thread_id, first)
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, first), 20)
        assert run.status is RunStatus.INTERRUPTED
        assert {run_id for run_id, _ in guests.started} <= {first}


async def test_an_operators_cancel_of_the_workflow_cancels_the_run_and_keeps_the_thread(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, guests = new_thread(), ScriptedGuests(agent=stays)
    async with scene(temporal, proxy, queue, guests=guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent")
        await until(lambda: proxy.seen[HEARTBEAT] > 1)
        await other.client.get_workflow_handle(thread_id).cancel()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        assert run.status is RunStatus.INTERRUPTED
        assert numbers(await whole(other.threads, thread_id)) == {1}
