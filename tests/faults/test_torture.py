"""Any mixture of faults under a run that writes all the time: what was acknowledged is there, in order, once."""

import asyncio
import os
import random

import pytest
from tests.faults.test_handover import is_attach
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, new_thread, whole
from tests.support.proxy import (
    CANCELED,
    COMPLETED,
    FAILED,
    HEARTBEAT,
    POLL_ACTIVITY,
    SIGNAL,
    TemporalProxy,
    heartbeat_of,
)
from tests.support.scene import scene
from tests.support.writing import control_value, control_write, numbers, put, task_write, tasks

from agentvisor.core.errors import AgentVisorError, Fenced
from agentvisor.core.runs import RunStatus

pytestmark = [pytest.mark.flow, pytest.mark.slow]

SEEDS = [int(one) for one in os.environ.get("TORTURE_SEEDS", "1,2,3").split(",")]
SECONDS = float(os.environ.get("TORTURE_SECONDS", "12"))
WRITERS = 4


class Writers:
    """An agent whose tasks write side by side; the count goes on across attempts."""

    def __init__(self, chance: random.Random) -> None:
        self.count = 0
        self.puts = set[int]()
        self.writes = set[int]()
        self.control = 0
        self.stop = asyncio.Event()
        self.die = asyncio.Event()
        self.attempts = 0
        self._chance = chance

    async def run(self, agent: ScriptedAgent) -> None:
        self.attempts = agent.attempt
        self.die.clear()
        dying = asyncio.create_task(self.die.wait())
        writing = [asyncio.create_task(self._write(agent)) for _ in range(WRITERS)]
        try:
            await asyncio.wait([dying, *writing], return_when=asyncio.FIRST_COMPLETED)
            if dying.done():
                raise asyncio.CancelledError
            await asyncio.gather(*writing)
        finally:
            for task in (dying, *writing):
                task.cancel()

    async def _write(self, agent: ScriptedAgent) -> None:
        while not self.stop.is_set():
            self.count += 1
            number = self.count
            try:
                match self._chance.randrange(4):
                    case 0:
                        await agent.call(task_write(0, f"task-{number}"))
                        self.writes.add(number)
                    case 1:
                        await agent.call(control_write(0, f"{number:09}"))
                        self.control = max(self.control, number)
                    case _:
                        size = self._chance.choice([50, 50, 50, 1_000, 10_000])
                        await agent.call(put(number, size=size))
                        self.puts.add(number)
            except Fenced:
                await asyncio.Event().wait()  # this attempt is lost: the host kills it


async def chaos(proxy: TemporalProxy, chance: random.Random, writers: Writers) -> None:
    """One fault after another."""
    while True:
        await asyncio.sleep(chance.uniform(0.01, 0.15))
        if sum(rule.left > 0 for rule in proxy._rules) > 2:
            continue  # a line that is broken all the time tests nothing
        match chance.randrange(12):
            case 0 | 1:
                proxy.hold(chance.choice([HEARTBEAT, SIGNAL]))
            case 2:
                proxy.refuse(chance.choice([HEARTBEAT, SIGNAL]), times=chance.randint(1, 3))
            case 3 | 4:
                proxy.drop_reply(chance.choice([HEARTBEAT, SIGNAL]), times=chance.randint(1, 2))
            case 5:
                proxy.twice(SIGNAL, times=chance.randint(1, 3))
            case 6 | 7:
                await proxy.deliver_held()
            case 8:
                proxy.drop_reply(chance.choice([CANCELED, COMPLETED, FAILED]))
            case 9:
                proxy.drop_reply(POLL_ACTIVITY, matches=is_attach)
            case 10:
                if chance.random() < 0.3:
                    proxy.refuse(HEARTBEAT, times=12, matches=heartbeat_of(writers.attempts))
            case _:
                if chance.random() < 0.15:
                    writers.die.set()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(180)
async def test_whatever_happens_everything_acknowledged_is_there_once(
    temporal: str, proxy: TemporalProxy, queue: str, seed: int
) -> None:
    chance, thread_id = random.Random(seed), new_thread()
    writers = Writers(chance)
    knobs = Knobs(
        heartbeat_timeout=1.5, compact_events=chance.choice([50, 90]), fold_threshold=chance.choice([0, 500, 24_000])
    )
    guests = ScriptedGuests(agent=writers.run)
    async with scene(temporal, proxy, queue, knobs=knobs, guests=guests) as (other, _victim):
        run_id = await other.start_run(thread_id, "agent", restarts=1_000, timeout=600)
        faults = asyncio.create_task(chaos(proxy, chance, writers))
        reads = 0
        loop = asyncio.get_running_loop()
        until = loop.time() + SECONDS
        while loop.time() < until:
            puts, writes = set(writers.puts), set(writers.writes)
            try:
                thread = await other.threads.read(thread_id)
            except AgentVisorError:
                continue
            reads += 1
            assert not thread.failure
            check(thread, puts, writes)
        faults.cancel()
        for rule in proxy._rules:
            rule.lift()
            rule.released.set()
        writers.stop.set()
        await proxy.deliver_held()
        run = await asyncio.wait_for(other.threads.wait_run(thread_id, run_id), 60)
        assert run.status is RunStatus.SUCCESS
        thread = await whole(other.threads, thread_id)
        check(thread, writers.puts, writers.writes)
        assert not thread.failure
        if writers.control:
            assert int(control_value(thread, 0)) >= writers.control
        print(
            f"seed {seed}: {len(writers.puts)} checkpoints, {len(writers.writes)} writes acknowledged "
            f"of {writers.count}, {len(run.attempts)} attempts, {thread.compactions} compactions, {reads} reads",
            [one.ending.name for one in run.attempts if one.ending],
        )


def check(thread, puts: set[int], writes: set[int]) -> None:
    assert puts <= numbers(thread), f"lost: {sorted(puts - numbers(thread))}"
    wanted = {f"task-{number}" for number in writes}
    assert wanted <= tasks(thread, 0), f"lost writes: {sorted(wanted - tasks(thread, 0))}"
