"""A deleted thread is gone with every execution of it, fences its writer, and leaves its id free."""

import asyncio

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.waiting import until
from tests.support.writing import listing, numbers, put

from agentvisor.core.errors import Fenced, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.host import threads_delete
from agentvisor.protocol.v1.store_pb2 import DeleteThread, StoreRequest

pytestmark = pytest.mark.flow


async def executions(client: Client, thread_id: ThreadId) -> list[str]:
    description = await client.get_workflow_handle(thread_id).describe()
    return [one.run_id for one in await threads_delete._chain(client, thread_id, description.run_id)]


async def is_there(client: Client, thread_id: ThreadId, run_id: str) -> bool:
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=thread_id, run_id=run_id)
    )
    try:
        await client.workflow_service.get_workflow_execution_history(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def compacted(host: EngineHost, thread_id: ThreadId, times: int) -> None:
    await host.call(thread_id, put(0))
    for number in range(1, times + 1):
        await make_compaction_due(host.threads, thread_id)
        await until_compacted(host.threads, thread_id, number)


async def test_every_execution_of_a_deleted_thread_is_gone_and_its_id_is_free(temporal: str) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, f"q-{thread_id}", knobs=Knobs(compact_events=40)) as host:
        await compacted(host, thread_id, 2)
        runs = await executions(host.client, thread_id)
        assert len(runs) == 3
        await host.threads.delete(thread_id)

        async def gone() -> bool:
            return not any([await is_there(host.client, thread_id, run_id) for run_id in runs])

        await until(gone)
        with pytest.raises(NotFound):
            await host.threads.get(thread_id)
        thread = await host.threads.create(thread_id, {}, exist_ok=False)
        assert not thread.store.checkpoints


async def test_deleting_what_is_not_there_says_so(engine: EngineHost) -> None:
    thread_id = new_thread()
    with pytest.raises(NotFound, match=thread_id):
        await engine.threads.delete(thread_id)
    await engine.threads.create(thread_id, {}, exist_ok=False)
    await engine.threads.delete(thread_id)
    with pytest.raises(NotFound):
        await engine.threads.delete(thread_id)


async def test_a_writer_of_a_deleted_thread_is_fenced(engine: EngineHost) -> None:
    thread_id = new_thread()
    await engine.call(thread_id, put(0))
    store = engine.live(thread_id).store.result()
    await engine.threads.delete(thread_id)
    with pytest.raises(Fenced):
        await store.call(put(1))


async def test_who_waits_for_a_run_is_told_that_the_thread_has_ended(temporal: str) -> None:
    """As that of a deleted thread has: Temporal removes it within half a minute, and it would answer until then."""
    thread_id, leave = new_thread(), asyncio.Event()

    async def held(self: ScriptedAgent) -> None:
        await leave.wait()

    async with engine_host(temporal, thread_id, guests=ScriptedGuests(held=held)) as one:
        run_id = await one.start_run(thread_id, "held")
        waiting = asyncio.create_task(one.threads.wait_run(thread_id, run_id))
        await until(lambda: bool(one.guests.started))
        await one.client.get_workflow_handle(thread_id).terminate()
        try:
            async with asyncio.timeout(10):
                with pytest.raises(NotFound, match=thread_id):
                    await waiting
        finally:
            leave.set()


async def test_a_delete_that_was_cut_off_is_resumed(temporal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, f"q-{thread_id}", knobs=Knobs(compact_events=40)) as host:
        await compacted(host, thread_id, 2)
        runs = await executions(host.client, thread_id)
        waited, calls = threads_delete._ignoring_gone, list[object]()

        async def dies(call: object) -> None:
            calls.append(call)
            await waited(call)
            if len(calls) == 2:  # terminated, and the oldest execution deleted
                raise ConnectionAbortedError

        monkeypatch.setattr(threads_delete, "_ignoring_gone", dies)
        with pytest.raises(ConnectionAbortedError):
            await host.threads.delete(thread_id)
        monkeypatch.undo()
        with pytest.raises(NotFound):  # as a caller sees it, the thread has been gone since it was terminated
            await host.threads.delete(thread_id)

        async def gone() -> bool:
            return not any([await is_there(host.client, thread_id, run_id) for run_id in runs])

        await until(gone)


async def test_a_client_outside_deletes_and_begins_anew_under_the_same_id(engine: EngineHost) -> None:
    thread_id, delete = new_thread(), StoreRequest(delete_thread=DeleteThread())
    await engine.call(thread_id, delete)  # nothing there: nothing to do
    await engine.call(thread_id, put(0))
    await engine.call(thread_id, delete)
    assert not (await engine.call(thread_id, listing())).listed.checkpoints
    await engine.call(thread_id, put(5))
    assert numbers(await engine.threads.read(thread_id)) == {5}
