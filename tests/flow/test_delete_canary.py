"""After a delete nothing of a thread is in Temporal, its id is usable at once, and whoever still writes is fenced."""

import asyncio
import os
import sqlite3
from uuid import uuid4

import psutil
import pytest
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.proxy import proxy_to
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until
from tests.support.writing import RESUME, numbers, put

from agentvisor.core.errors import AgentVisorError, Fenced, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import RunStatus
from agentvisor.protocol.blobs import Limits, encode
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.v1 import run_pb2, store_pb2

pytestmark = pytest.mark.flow

SOON = 90.0
"""Seconds in which Temporal, which deletes in the background, has done it: about 20 are usual."""
DELETE = "DeleteWorkflowExecution"
KNOBS = Knobs(compact_events=60, fold_threshold=0)


def in_temporal(server: TemporalProcess, canary: str) -> bool:
    """Whether the text is in any row of the server's database.

    But for the full-text index of the development server's SQLite: that forgets a deleted term when it merges its
    segments, which is SQLite's affair (docs/history-limits.md).
    """
    database = sqlite3.connect(f"file:{server.folder / 'temporal.db'}?mode=ro", uri=True)
    try:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return any(
            canary.encode() in (cell if isinstance(cell, bytes) else str(cell).encode())
            for table in tables
            if "_fts_" not in table
            for row in database.execute(f"SELECT * FROM {table}")
            for cell in row
        )
    finally:
        database.close()


def rows(server: TemporalProcess) -> dict[str, int]:
    """How much the server holds, by table."""
    database = sqlite3.connect(f"file:{server.folder / 'temporal.db'}?mode=ro", uri=True)
    try:
        tables = ("executions", "current_executions", "history_node", "history_tree", "executions_visibility")
        return {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    finally:
        database.close()


def secret_put(number: int, canary: str) -> store_pb2.StoreRequest:
    blob = encode("bytes", canary.encode(), None, Limits())
    return store_pb2.StoreRequest(
        put=store_pb2.PutCheckpoint(
            checkpoint=store_pb2.Checkpoint(
                checkpoint_id=f"{number:08}",
                type="msgpack",
                record=canary.encode(),
                metadata=metadata_to_struct({"note": canary}),
                channels=[store_pb2.ChannelValue(channel=canary, key=blob.key)],
            ),
            blobs=[blob],
        )
    )


def secret_write(number: int, canary: str) -> store_pb2.StoreRequest:
    write = store_pb2.Write(idx=RESUME, channel="__resume__", type="bytes", data=canary.encode())
    return store_pb2.StoreRequest(
        put_writes=store_pb2.TaskWrites(checkpoint_id=f"{number:08}", task_id=canary, writes=[write])
    )


def secret_run(canary: str) -> run_pb2.RunSpec:
    return run_pb2.RunSpec(
        run_id=f"r-{uuid4().hex}",
        agent="agent",
        kind=run_pb2.RUN_KIND_AGENT,
        input=f'{{"secret": "{canary}"}}'.encode(),
        metadata=metadata_to_struct({"secret": canary}),
        heartbeat_timeout_ms=4000,
        timeout_ms=60_000,
        restart=run_pb2.RestartPolicy(max_attempts=0),
    )


class Agent:
    """Writes the secret; on its last run it stays alive."""

    def __init__(self, canary: str) -> None:
        self.canary = canary
        self.stays = False
        self.alive = asyncio.Event()
        self.refused: AgentVisorError | None = None
        self.number = 0

    async def run(self, agent: ScriptedAgent) -> None:
        for _ in range(12):
            self.number += 1
            await agent.call(secret_put(self.number, self.canary))
            await agent.call(secret_write(self.number, self.canary))
        if not self.stays:
            raise RuntimeError(self.canary)
        self.alive.set()
        try:
            while True:
                self.number += 1
                await agent.call(secret_put(self.number, self.canary))
        except AgentVisorError as error:
            self.refused = error


async def a_thread_with_a_secret(host: EngineHost, agent: Agent, thread_id: ThreadId) -> None:
    """Several executions of it, the last one under a live agent."""
    metadata = {"secret": agent.canary}
    await host.threads.create(thread_id, metadata, exist_ok=False)
    for _ in range(2):
        run = await host.threads.start_run(thread_id, secret_run(agent.canary), create=True, thread_metadata=metadata)
        ended = await asyncio.wait_for(host.threads.wait_run(thread_id, run.run_id), 30)
        assert ended.status is RunStatus.ERROR
        await make_compaction_due(host.threads, thread_id, events=60)
    await until_compacted(host.threads, thread_id, 2)
    agent.stays = True
    await host.threads.start_run(thread_id, secret_run(agent.canary), create=True, thread_metadata=metadata)
    await asyncio.wait_for(agent.alive.wait(), 20)


async def test_nothing_is_left_the_id_is_free_and_a_live_attempt_is_fenced(temporal_process: TemporalProcess) -> None:
    thread_id, agent = new_thread(), Agent(uuid4().hex)
    guests = ScriptedGuests(agent=agent.run)
    async with engine_host(temporal_process.address, "q", knobs=KNOBS, guests=guests) as host:
        await a_thread_with_a_secret(host, agent, thread_id)
        assert in_temporal(temporal_process, agent.canary)
        await host.threads.delete(thread_id)
        with pytest.raises(NotFound):
            await host.threads.get(thread_id)
        await until(lambda: agent.refused is not None)
        assert isinstance(agent.refused, Fenced)
        await until(lambda: not in_temporal(temporal_process, agent.canary), seconds=SOON)


async def test_the_id_is_usable_at_once(temporal_process: TemporalProcess) -> None:
    thread_id = new_thread()

    async def writes(agent: ScriptedAgent) -> None:
        await agent.call(put(7))

    async with engine_host(temporal_process.address, "q", guests=ScriptedGuests(agent=writes)) as host:
        for _ in range(5):
            await host.threads.create(thread_id, {}, exist_ok=False)
            run_id = await host.start_run(thread_id, "agent")
            await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 20)
            thread = await whole(host.threads, thread_id)
            assert list(thread.runs) == [run_id]
            assert numbers(thread) == {7}
            await host.threads.delete(thread_id)


@pytest.mark.parametrize("done", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)])
async def test_a_delete_that_was_cut_off_is_finished_by_another(temporal_process: TemporalProcess, done: int) -> None:
    thread_id, agent = new_thread(), Agent(uuid4().hex)
    async with (
        engine_host(temporal_process.address, "q", knobs=KNOBS, guests=ScriptedGuests(agent=agent.run)) as host,
        proxy_to(temporal_process.address) as proxy,
        engine_host(proxy.address, "elsewhere", name="victim") as victim,
    ):
        await a_thread_with_a_secret(host, agent, thread_id)
        cut_off = asyncio.create_task(victim.threads.delete(thread_id))
        await until(lambda: proxy.seen[DELETE] >= done or cut_off.done())
        proxy.refuse(DELETE)
        cut_off.cancel()
        await asyncio.gather(cut_off, return_exceptions=True)
        try:
            await host.threads.delete(thread_id)
        except NotFound:
            assert done > 0  # the first try had ended the thread; what it left is deleted all the same
        await until(lambda: not in_temporal(temporal_process, agent.canary), seconds=SOON)


async def test_a_delete_during_compactions_leaves_no_execution_behind(temporal_process: TemporalProcess) -> None:
    knobs = Knobs(compact_events=10**6, compact_signals=5, fold_threshold=0)
    for _ in range(3):
        thread_id, agent = new_thread(), Agent(uuid4().hex)
        agent.stays = True
        async with engine_host(
            temporal_process.address, "q", knobs=knobs, guests=ScriptedGuests(agent=agent.run)
        ) as host:
            await host.threads.start_run(thread_id, secret_run(agent.canary), create=True, thread_metadata={})
            await asyncio.wait_for(agent.alive.wait(), 30)
            await host.threads.delete(thread_id)
            await until(lambda agent=agent: agent.refused is not None)
        await until(lambda canary=agent.canary: not in_temporal(temporal_process, canary), seconds=SOON)


@pytest.mark.slow
async def test_ten_thousand_threads_come_and_go(temporal_process: TemporalProcess) -> None:
    """AGENTVISOR_TEST_THREADS says how many; the host's memory is back afterwards.

    The server removes deleted executions in the background, with pauses that grow with their number. What it still
    holds is printed.
    """
    many = int(os.environ.get("AGENTVISOR_TEST_THREADS", "1000"))

    async def writes(agent: ScriptedAgent) -> None:
        await agent.call(put(1, size=20_000))

    async with engine_host(temporal_process.address, "q", guests=ScriptedGuests(agent=writes)) as host:
        at_once = asyncio.Semaphore(16)

        async def one() -> None:
            async with at_once:
                thread_id = new_thread()
                run_id = await host.start_run(thread_id, "agent")
                await host.threads.wait_run(thread_id, run_id)
                await host.threads.delete(thread_id)

        async def some(number: int) -> float:
            await asyncio.gather(*(one() for _ in range(number)))
            return psutil.Process().memory_info().rss / 1e6

        warm = await some(max(250, many // 10))  # the workflows that a host keeps in memory are 200
        end = await some(many)
        print(f"{many} threads: host memory {warm:.0f} MB -> {end:.0f} MB; server: {rows(temporal_process)}")
        assert end < warm * 1.1 + 20

        async def gone() -> bool:
            return (await host.client.count_workflows("ExecutionStatus = 'Running'")).count == 0

        await until(gone, seconds=60)
