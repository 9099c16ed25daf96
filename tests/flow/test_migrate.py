"""State versions: a host does not touch what a newer one wrote, and `agentvisor migrate` takes idle threads along."""

import asyncio
import subprocess
import sys
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import engine_host, new_thread, whole
from tests.support.scene import until_compacted
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.core.errors import Corrupt, Unavailable
from agentvisor.core.thread import STATE_VERSION
from agentvisor.host.codec.reading import check_readable
from agentvisor.host.threads_migrate import Migration, migrate_all
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.threads import thread_from_message
from agentvisor.protocol.v1 import thread_pb2

pytestmark = pytest.mark.flow

FAILED_TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


def migrate(server: TemporalProcess, *options: str) -> str:
    command = [sys.executable, "-m", "agentvisor.cli.main", "migrate", "--temporal-address", server.address, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=server.folder, timeout=60)
    return done.stdout


async def writes(agent: ScriptedAgent) -> None:
    await agent.call(put(1))


def test_state_of_a_newer_version_is_refused_and_the_error_says_what_to_do() -> None:
    newer = thread_pb2.Thread(version=STATE_VERSION + 1, thread_id="t")
    with pytest.raises(Unavailable, match=rf"version {STATE_VERSION + 1}.*up to {STATE_VERSION}: upgrade this host"):
        thread_from_message(newer)


async def test_a_host_leaves_a_thread_of_a_newer_version_to_a_newer_host(temporal_process: TemporalProcess) -> None:
    thread_id = new_thread()
    newer = thread_pb2.Thread(version=STATE_VERSION + 1, thread_id=thread_id).SerializeToString()
    async with engine_host(temporal_process.address, "q") as host:
        handle = await host.client.start_workflow(WORKFLOW, newer, id=thread_id, task_queue="q")

        async def has_failed_a_task() -> bool:
            events = [event async for event in handle.fetch_history_events()]
            failures = [
                event.workflow_task_failed_event_attributes for event in events if event.event_type == FAILED_TASK
            ]
            return any("upgrade this host" in one.failure.message for one in failures)

        await until(has_failed_a_task)
        description = await handle.describe()
        assert description.status is not None
        assert description.status.name == "RUNNING"


async def test_what_somebody_has_started_by_hand_is_named_and_costs_no_other_thread(
    temporal_process: TemporalProcess,
) -> None:
    async with engine_host(temporal_process.address, f"q-{uuid4().hex}", guests=ScriptedGuests(agent=writes)) as host:
        by_hand = [
            await host.client.start_workflow(WORKFLOW, given, id=new_thread(), task_queue="nobody's")
            for given in ("a text", b"\xff")
        ]
        thread_id = new_thread()
        await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
        with pytest.raises(Corrupt, match=f"{by_hand[0].id} has begun with something that is no state.*: delete it"):
            await check_readable(host.client, by_hand[0].id)

        async def all_are_told() -> bool:
            outcomes = await migrate_all(host.client, everything=False)
            return outcomes[Migration.DAMAGED] == 2 and outcomes[Migration.PRESENT] > 0

        await until(all_are_told)
        for one in by_hand:
            await one.terminate()


async def test_idle_threads_continue_as_new_and_lose_nothing(temporal_process: TemporalProcess) -> None:
    guests = ScriptedGuests(agent=writes)
    async with engine_host(temporal_process.address, f"q-{uuid4().hex}", guests=guests) as host:
        threads = [new_thread() for _ in range(3)]
        for thread_id in threads:
            await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))

        async def listed() -> bool:
            return len(await host.threads.search(metadata={}, status=None, ids=None, limit=10, offset=0)) == 3

        await until(listed)
        assert f"3  {'on this version already'}" in await asyncio.to_thread(migrate, temporal_process)
        assert "3  asked" in await asyncio.to_thread(migrate, temporal_process, "--all")
        for thread_id in threads:
            await until_compacted(host.threads, thread_id)
            assert numbers(await whole(host.threads, thread_id)) == {1}
