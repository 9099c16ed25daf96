"""A log over 2 MB in a heartbeat or a report is lost by the server without an error: so it is folded first."""

import asyncio

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, new_thread, whole
from tests.support.proxy import CANCELED, COMPLETED, HEARTBEAT, SIGNAL, TemporalProxy
from tests.support.scene import scene, until_compacted, until_no_attempt
from tests.support.waiting import until
from tests.support.writing import numbers, put, task_write, tasks

from agentvisor.core.runs import RunStatus
from agentvisor.host import journal

pytestmark = pytest.mark.flow

NEVER_FOLD = 1 << 40


async def lost_of_a_large_log(temporal: str, proxy: TemporalProxy, queue: str) -> set[int]:
    """Three checkpoints of 900 KB in one commit are acknowledged, and the host falls silent: what is missing."""
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(heartbeat_timeout=2.5, fold_threshold=NEVER_FOLD)) as (
        other,
        victim,
    ):
        await victim.call(thread_id, put(0))
        store = victim.live(thread_id).store.result()
        beats = proxy.hold_reply(HEARTBEAT)
        await beats.until_caught()
        writes = [asyncio.create_task(store.call(put(number, size=900_000))) for number in (1, 2, 3)]
        await until(lambda: store._journal.log.size > 2_700_000)
        beats.released.set()
        async with asyncio.timeout(20):
            await asyncio.gather(*writes)
        proxy.refuse(HEARTBEAT)
        await until_no_attempt(other.threads, thread_id)
        return {0, 1, 2, 3} - numbers(await whole(other.threads, thread_id))


async def test_a_log_over_two_megabytes_is_folded_first_and_nothing_of_it_is_lost(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await lost_of_a_large_log(temporal, proxy, queue) == set()


async def test_without_the_bound_a_log_over_two_megabytes_is_acknowledged_and_lost(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "HEARTBEAT_BYTES", 3_500_000)
    assert await lost_of_a_large_log(temporal, proxy, queue) == {0, 1, 2, 3}


async def test_a_large_value_goes_in_a_fold_and_not_in_a_heartbeat(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(fold_threshold=NEVER_FOLD)) as (other, victim):
        await victim.call(thread_id, put(0, size=1_400_000))
        await victim.call(thread_id, put(1))
        assert proxy.seen[SIGNAL] >= 2  # the value alone is over what one signal is given beside others
        assert numbers(await whole(other.threads, thread_id)) == {0, 1}


async def test_what_an_agent_wrote_last_and_never_waited_for_is_in_the_report_or_folded_before_it(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, open_calls = new_thread(), list[asyncio.Task[object]]()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        beats = proxy.hold_reply(HEARTBEAT)
        await beats.until_caught()
        for number in range(1, 4):
            open_calls.append(asyncio.create_task(self.call(put(number, size=900_000))))
        await until(lambda: victim.live(thread_id).journal.log.size > 2_700_000)
        beats.released.set()

    knobs = Knobs(fold_threshold=NEVER_FOLD)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=ScriptedGuests(agent=agent)) as (other, victim):
        run_id = await other.start_run(thread_id, "agent")
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 20)
        await asyncio.gather(*open_calls)
        assert run.status is RunStatus.SUCCESS
        assert len(run.attempts) == 1
        assert proxy.seen[COMPLETED] == 1
        assert numbers(await whole(other.threads, thread_id)) == {0, 1, 2, 3}


async def test_a_large_log_is_handed_over_in_parts_and_nothing_of_it_is_lost(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    knobs = Knobs(fold_threshold=NEVER_FOLD, max_state=1_900_000, compact_events=40)
    async with scene(temporal, proxy, queue, knobs=knobs) as (other, victim):
        await victim.call(thread_id, put(0))
        store = victim.live(thread_id).store.result()
        refused = proxy.refuse(CANCELED)
        for number in range(20):
            await other.threads.update_metadata(thread_id, {"number": number})
        await refused.until_caught()
        writes = [asyncio.create_task(store.call(task_write(0, f"t{n}", size=170_000))) for n in range(6)]
        await asyncio.sleep(0)
        refused.lift()
        async with asyncio.timeout(20):
            await asyncio.gather(*writes)
        await until_compacted(other.threads, thread_id)
        thread = await whole(other.threads, thread_id)
        assert len(tasks(thread, 0)) == 6
        assert not thread.failure
        assert not victim.live(thread_id).journal.is_fenced
