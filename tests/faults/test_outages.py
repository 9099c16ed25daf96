"""Lost answers, a Temporal that is killed, a host that is frozen: nothing acknowledged is lost, nothing is forked."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, engine_host, new_thread, whole
from tests.support.proxy import COMPLETED, DESCRIBE, HEARTBEAT, QUERY, SIGNAL, TemporalProxy
from tests.support.scene import scene, until_no_attempt
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.errors import Fenced
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import Ending, RunStatus
from agentvisor.host import leash

pytestmark = pytest.mark.flow


async def test_a_heartbeat_that_fails_once_costs_neither_the_attempt_nor_the_operation(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue) as (other, victim):
        await victim.call(thread_id, put(0))
        attempt = victim.live(thread_id).id
        failed = proxy.refuse(HEARTBEAT, times=1)
        await victim.call(thread_id, put(1))
        await victim.call(thread_id, put(2))
        assert failed.caught == 1
        assert victim.live(thread_id).id == attempt
        assert numbers(await whole(other.threads, thread_id)) == {0, 1, 2}


async def test_ownretry_a_heartbeat_is_sent_once_and_its_lost_answer_is_seen(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(idle_heartbeat=1.0)) as (_other, victim):
        await victim.call(thread_id, put(0))
        journal = victim.live(thread_id).journal
        await until(lambda: not journal._waiting)
        lost = proxy.drop_reply(HEARTBEAT)
        writing = asyncio.create_task(victim.call(thread_id, put(1)))
        await lost.until_caught()
        seen = proxy.seen[HEARTBEAT]
        await until(lambda: journal._uncertain)
        assert proxy.seen[HEARTBEAT] == seen
        await writing


async def test_a_report_whose_answer_was_lost_is_not_taken_for_a_loss_of_the_run(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        proxy.drop_reply(COMPLETED)

    async with scene(temporal, proxy, queue, guests=ScriptedGuests(agent=agent)) as (other, _victim):
        run = await other.threads.wait_run(thread_id, await other.start_run(thread_id, "agent"))
        assert run.status is RunStatus.SUCCESS
        assert [one.ending for one in run.attempts] == [Ending.COMPLETED]


async def test_an_outage_while_an_attempt_reads_its_thread_is_waited_out(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    # It used to end the run with "could not start".
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))

    async with scene(temporal, proxy, queue, guests=ScriptedGuests(agent=agent)) as (other, _victim):
        refused = [proxy.refuse(QUERY, times=30), proxy.refuse(DESCRIBE, times=30)]
        run_id = await other.start_run(thread_id, "agent")
        await refused[0].until_caught()
        refused[0].lift()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 30)
        assert run.status is RunStatus.SUCCESS
        assert len(run.attempts) == 1


async def test_temporal_killed_for_less_than_the_heartbeat_timeout_costs_nothing(
    temporal_process: TemporalProcess, queue: str
) -> None:
    thread_id = new_thread()
    async with engine_host(temporal_process.address, queue, knobs=Knobs(heartbeat_timeout=12.0)) as host:
        await host.call(thread_id, put(0))
        live = host.live(thread_id)
        temporal_process.kill()
        during = asyncio.create_task(host.call(thread_id, put(1)))
        await temporal_process.start()
        await asyncio.wait_for(during, 20)
        assert host.live(thread_id) is live
        assert not live.journal.is_fenced
        assert numbers(await whole(host.threads, thread_id)) == {0, 1}


async def test_temporal_killed_for_longer_ends_the_attempt_and_loses_nothing_that_was_acknowledged(
    temporal_process: TemporalProcess, queue: str
) -> None:
    thread_id, attempts = new_thread(), list[int]()

    async def agent(self: ScriptedAgent) -> None:
        attempts.append(self.attempt)
        if self.attempt == 1:
            await self.call(put(0))
            temporal_process.kill()
            with pytest.raises(Fenced):
                await self.call(put(1))
            await asyncio.Event().wait()
        await self.call(put(2))

    guests = ScriptedGuests(agent=agent)
    knobs = Knobs(heartbeat_timeout=1.5)
    async with engine_host(temporal_process.address, queue, knobs=knobs, guests=guests) as host:
        run_id = await host.start_run(thread_id, "agent")
        began = time.monotonic()
        await until(lambda: attempts and time.monotonic() > began + 3)
        await temporal_process.start()
        run = await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 30)
        assert run.status is RunStatus.SUCCESS
        assert [one.ending for one in run.attempts] == [Ending.HOST_GONE, Ending.COMPLETED]
        assert {0, 2} <= numbers(await whole(host.threads, thread_id))


async def test_folds_of_an_attempt_whose_heartbeats_do_not_arrive_are_no_sign_that_it_lives(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    """Time without a live attempt counts from the last heartbeat that Temporal took."""
    thread_id, seen = new_thread(), list[int]()

    async def agent(self: ScriptedAgent) -> None:
        await self.call(put(0))
        proxy.refuse(HEARTBEAT)
        seen.append(proxy.seen[SIGNAL])
        writing = list[asyncio.Task[object]]()
        try:
            while True:
                writing.append(asyncio.create_task(self.call(put(len(writing) + 1))))
                await asyncio.wait(writing[-1:], timeout=0.1)
        finally:
            seen.append(proxy.seen[SIGNAL])
            for one in writing:
                one.cancel()
            await asyncio.gather(*writing, return_exceptions=True)

    guests = ScriptedGuests(agent=agent)
    async with scene(temporal, proxy, queue, knobs=Knobs(heartbeat_timeout=2.0), guests=guests) as (other, _):
        run_id = await other.start_run(thread_id, "agent", elapsed=1.0)
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 30)
    assert (run.status, [one.ending for one in run.attempts]) == (RunStatus.ERROR, [Ending.HOST_GONE])
    assert seen[1] - seen[0] > 3


# --- a host that is frozen -------------------------------------------------------------------------------------------

FROZEN = """
import asyncio, sys
from agentvisor.core.errors import Fenced
from agentvisor.core.ids import ThreadId
from tests.support.host import Knobs, Role, engine_host
from tests.support.writing import put

async def main(address, queue, thread_id, timeout):
    knobs = Knobs(heartbeat_timeout=float(timeout), idle_heartbeat=float(timeout) / 6)
    async with engine_host(address, queue, name="frozen", role=Role.ATTEMPTS, knobs=knobs) as host:
        await host.call(ThreadId(thread_id), put(0, namespace="frozen"))
        store = host.live(ThreadId(thread_id)).store.result()
        for number in range(1, 1_000_000):
            reply = await store.call(put(number, namespace="frozen"))
            print("acknowledged", number, flush=True)

try:
    asyncio.run(main(*sys.argv[1:]))
except Fenced:
    print("fenced", 0, flush=True)
"""


@asynccontextmanager
async def frozen_host(*arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A host in a process of its own that writes without end and says what was acknowledged."""
    command = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), sys.executable, "-c", FROZEN, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_host_that_was_frozen_past_its_heartbeat_timeout_gets_no_acknowledgement_and_forks_nothing(
    temporal: str, queue: str
) -> None:
    thread_id: ThreadId = new_thread()
    said = list[tuple[str, int]]()
    async with (
        engine_host(temporal, queue, name="second", knobs=Knobs(heartbeat_timeout=2.0)) as second,
        frozen_host(temporal, queue, thread_id, "2.0") as process,
    ):

        async def listen() -> None:
            assert process.stdout is not None
            async for line in process.stdout:
                word, _, number = line.decode().partition(" ")
                if word in {"acknowledged", "fenced"}:
                    said.append((word, int(number)))

        listening = asyncio.create_task(listen())
        await until(lambda: len(said) > 20, seconds=30)
        process.send_signal(signal.SIGSTOP)
        await until_no_attempt(second.threads, thread_id)
        before = numbers(await whole(second.threads, thread_id), "frozen")
        await second.call(thread_id, put(0, namespace="second"))
        process.send_signal(signal.SIGCONT)
        await asyncio.wait_for(listening, 20)
        for number in range(1, 4):
            await second.call(thread_id, put(number, namespace="second"))
        thread = await whole(second.threads, thread_id)
    assert said[-1][0] == "fenced"
    acknowledged = {number for word, number in said if word == "acknowledged"}
    assert acknowledged <= before  # an answer that was on its way may come late; what it answers was committed in time
    assert numbers(thread, "frozen") == before
    assert numbers(thread, "second") == {0, 1, 2, 3}
