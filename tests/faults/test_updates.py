"""An update of a thread's state counts as a whole, once, or not at all, whatever is lost on the way."""

import asyncio

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.proxy import COMPLETED, HEARTBEAT, TemporalProxy, heartbeat_of
from tests.support.scene import make_compaction_due, scene, until_compacted
from tests.support.waiting import until
from tests.support.writing import numbers, put, task_write, tasks

from agentvisor.core.errors import StateTooLarge
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import Ending, Run, RunKind, RunStatus
from agentvisor.host import held_log

pytestmark = pytest.mark.flow

LARGE = 60_000
"""Of a value: three of them are folded one by one."""


async def updated(host: EngineHost, thread_id: ThreadId, agent: str = "agent") -> Run:
    run_id = await host.start_run(thread_id, agent, kind=RunKind.UPDATE)
    return await host.threads.wait_run(thread_id, run_id)


async def three_steps(self: ScriptedAgent) -> None:
    for number in range(3):
        await self.call(put(number, size=LARGE))
        await self.call(task_write(number, "task"))


def endings(run: Run) -> list[Ending | None]:
    return [attempt.ending for attempt in run.attempts]


async def test_nothing_of_an_update_is_seen_before_its_end_and_then_all_of_it(temporal: str, queue: str) -> None:
    made, leave = asyncio.Event(), asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await three_steps(self)
        made.set()
        await leave.wait()

    thread_id = new_thread()
    async with engine_host(temporal, queue, guests=ScriptedGuests(agent=agent)) as host:
        run_id = await host.start_run(thread_id, "agent", kind=RunKind.UPDATE)
        await made.wait()
        assert numbers(await whole(host.threads, thread_id)) == set()
        leave.set()
        assert (await host.threads.wait_run(thread_id, run_id)).status is RunStatus.SUCCESS
        after = await whole(host.threads, thread_id)
        assert (numbers(after), tasks(after, 2)) == ({0, 1, 2}, {"task"})


async def test_an_update_that_was_killed_or_refused_leaves_nothing(temporal: str, queue: str) -> None:
    async def killed(self: ScriptedAgent) -> None:
        await three_steps(self)
        raise asyncio.CancelledError

    async def refused(self: ScriptedAgent) -> None:
        await three_steps(self)
        raise ValueError("no such node")

    thread_id = new_thread()
    async with engine_host(temporal, queue, guests=ScriptedGuests(killed=killed, refused=refused)) as host:
        gone = await updated(host, thread_id, "killed")
        assert (gone.status, endings(gone)) == (RunStatus.ERROR, [Ending.AGENT_SIGNAL] * 4)
        no = await updated(host, thread_id, "refused")
        assert (no.error_type, no.error_message) == ("ValueError", "no such node")
        after = await whole(host.threads, thread_id)
        assert (numbers(after), after.runs.keys() & {gone.run_id, no.run_id}) == (set(), {gone.run_id, no.run_id})
        held = await host.threads.storage(thread_id)
        assert (held.blobs, held.checkpoints, held.pending_writes) == (0, 0, 0)


async def test_an_update_whose_host_is_lost_is_made_once_by_another_attempt(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    async def agent(self: ScriptedAgent) -> None:
        await three_steps(self)
        if self.attempt == 1:
            proxy.refuse(HEARTBEAT, matches=heartbeat_of(1))
            await asyncio.Event().wait()

    thread_id = new_thread()
    knobs = Knobs(heartbeat_timeout=1.2)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=ScriptedGuests(agent=agent)) as (other, _victim):
        run = await updated(other, thread_id)
        assert endings(run) == [Ending.HOST_GONE, Ending.COMPLETED]
        assert numbers(await whole(other.threads, thread_id)) == {0, 1, 2}


async def test_an_update_whose_report_is_answered_with_silence_is_made_once(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, guests=ScriptedGuests(agent=three_steps)) as (other, victim):
        lost = proxy.drop_reply(COMPLETED)
        run = await updated(other, thread_id)
        await lost.until_caught()
        assert (run.status, endings(run)) == (RunStatus.SUCCESS, [Ending.COMPLETED])
        assert numbers(await whole(other.threads, thread_id)) == {0, 1, 2}
        assert [attempt for _, attempt in victim.guests.started] == [1]


async def test_an_update_goes_on_over_a_compaction(temporal: str, queue: str) -> None:
    leave = asyncio.Event()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0, size=LARGE))
        await leave.wait()
        await self.call(put(1, size=LARGE))

    thread_id = new_thread()
    knobs = Knobs(compact_events=40)
    async with engine_host(temporal, queue, knobs=knobs, guests=ScriptedGuests(agent=agent)) as host:
        run_id = await host.start_run(thread_id, "agent", kind=RunKind.UPDATE)
        await until(lambda: host.guests.started)
        await make_compaction_due(host.threads, thread_id)
        await until_compacted(host.threads, thread_id)
        leave.set()
        run = await host.threads.wait_run(thread_id, run_id)
        assert endings(run) == [Ending.COMPLETED]
        assert numbers(await whole(host.threads, thread_id)) == {0, 1}


async def test_a_client_outside_gives_way_to_an_update(temporal: str, queue: str) -> None:
    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(1))

    thread_id = new_thread()
    async with engine_host(temporal, queue, guests=ScriptedGuests(agent=agent)) as host:
        await host.call(thread_id, put(0))
        assert (await updated(host, thread_id)).status is RunStatus.SUCCESS
        await host.call(thread_id, put(2))
        assert numbers(await whole(host.threads, thread_id)) == {0, 1, 2}


async def test_an_update_that_no_report_could_carry_is_refused(
    temporal: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_log, "MOST_BYTES", 1_000)

    async def agent(self: ScriptedAgent) -> None:
        for number in range(100):
            await self.call(put(number, size=LARGE))

    thread_id = new_thread()
    async with engine_host(temporal, queue, guests=ScriptedGuests(agent=agent)) as host:
        run = await updated(host, thread_id)
        assert (run.error_type, "make it in several" in run.error_message) == (StateTooLarge.__name__, True)
        assert numbers(await whole(host.threads, thread_id)) == set()
