"""DESCFIRST and READCONS: readers see every acknowledged operation, whatever is folded meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, Role, engine_host, new_thread, whole
from tests.support.proxy import TemporalProxy
from tests.support.scene import scene
from tests.support.waiting import until
from tests.support.writing import listing, name, numbers, put

from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host import threads_read
from agentvisor.host.threads_read import ThreadReader
from agentvisor.protocol.v1 import journal_pb2, thread_pb2

pytestmark = pytest.mark.flow

READS = 300
EVERYTHING = thread_pb2.ReadThread()


async def test_descfirst_a_reader_beside_a_writer_that_folds_all_the_time_sees_all_that_was_acknowledged(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id, acknowledged = new_thread(), list[int]()
    async with scene(temporal, proxy, queue, knobs=Knobs(fold_threshold=1_000)) as (other, victim):
        await victim.call(thread_id, put(0))

        async def write() -> None:
            number = 1
            while True:
                await victim.call(thread_id, put(number))
                acknowledged.append(number)
                number += 1

        async def read(count: int) -> None:
            for _ in range(count):
                before = list(acknowledged)
                thread = await ThreadReader(other.client).read(thread_id, EVERYTHING)
                missing = set(before) - numbers(thread)
                assert not missing, f"acknowledged before the read began, and not in it: {missing}"

        writing = asyncio.create_task(write())
        await asyncio.gather(*(read(READS // 3) for _ in range(3)))
        writing.cancel()
        folds = victim.live(thread_id).journal.folds
    assert folds > 20
    assert len(acknowledged) > 100


class FoldsBetween(ThreadReader):
    """Reads in the order that the rule says; something happens between its two looks."""

    between: Callable[[], Awaitable[None]]

    async def read(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread:
        log = await self._pending_log(thread_id)
        await self.between()
        return self._merged(await self.state(thread_id, asked), log)

    def _merged(self, thread: Thread, log: journal_pb2.Log | None) -> Thread:
        assert log is None or threads_read.lay_over(thread, log)
        return thread


class QueriesFirst(FoldsBetween):
    """The other order."""

    async def read(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread:
        thread = await self.state(thread_id, asked)
        await self.between()
        return self._merged(thread, await self._pending_log(thread_id))


async def missed_when_folded_between_the_looks(
    temporal: str, proxy: TemporalProxy, queue: str, reader: type[FoldsBetween]
) -> set[int]:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue, knobs=Knobs(fold_quiet=0.05)) as (other, victim):
        await victim.call(thread_id, put(0))
        journal = victim.live(thread_id).journal
        await until(lambda: not journal.log.entries)
        beats = journal.commits
        await until(lambda: journal.commits > beats)
        await victim.call(thread_id, put(1))

        async def fold() -> None:
            await until(lambda: not journal.log.entries)
            commits = journal.commits
            await until(lambda: journal.commits > commits)

        one = reader(other.client)
        one.between = fold
        return {0, 1} - numbers(await one.read(thread_id, EVERYTHING))


async def test_descfirst_a_fold_between_the_two_looks_hides_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await missed_when_folded_between_the_looks(temporal, proxy, queue, FoldsBetween) == set()


async def test_descfirst_the_other_order_misses_what_was_folded_between_the_looks(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await missed_when_folded_between_the_looks(temporal, proxy, queue, QueriesFirst) == {1}


class Noting(ThreadReader):
    """Notes its looks."""

    looks: list[str]

    async def _pending_log(self, thread_id: ThreadId) -> journal_pb2.Log | None:
        self.looks.append("log")
        return await super()._pending_log(thread_id)

    async def state(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread:
        self.looks.append("state")
        return await super().state(thread_id, asked)


async def test_descfirst_is_the_order_in_which_the_reader_looks(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    thread_id = new_thread()
    async with scene(temporal, proxy, queue) as (other, victim):
        await victim.call(thread_id, put(0))
        reader = Noting(other.client)
        reader.looks = []
        await reader.read(thread_id, EVERYTHING)
    assert reader.looks == ["log", "state"]


async def test_readcons_an_attempt_sees_what_another_host_wrote_since_its_own_hosts_last_attempt(
    temporal: str, queue: str
) -> None:
    thread_id, seen = new_thread(), list[set[str]]()

    def writing(number: int) -> ScriptedGuests:
        async def agent(self: ScriptedAgent) -> None:
            reply = await self.call(listing())
            seen.append({one.tuple.checkpoint.checkpoint_id for one in reply.listed.checkpoints})
            await self.call(put(number + len(seen)))

        return ScriptedGuests(agent=agent)

    async with engine_host(temporal, queue, name="threads", role=Role.WORKFLOWS) as other:
        async with engine_host(temporal, queue, name="first", role=Role.ATTEMPTS, guests=writing(10)) as first:
            await first.threads.wait_run(thread_id, await other.start_run(thread_id, "agent"))
        async with engine_host(temporal, queue, name="second", role=Role.ATTEMPTS, guests=writing(20)) as second:
            await second.threads.wait_run(thread_id, await other.start_run(thread_id, "agent"))
        async with engine_host(temporal, queue, name="first", role=Role.ATTEMPTS, guests=writing(30)) as first:
            await first.threads.wait_run(thread_id, await other.start_run(thread_id, "agent"))
        assert seen == [set(), {name(11)}, {name(11), name(22)}]
        assert numbers(await whole(other.threads, thread_id)) == {11, 22, 33}
