"""Reads of a thread: pages that agree, values from the state and from the live log, and clear refusals."""

import asyncio
import json

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.proxy import DESCRIBE, QUERY, proxy_to
from tests.support.waiting import until
from tests.support.writing import control_write, listing, name, numbers, put, task_write, tasks

from agentvisor.core.errors import NotFound, Unavailable
from agentvisor.core.ids import ROOT, BlobKey, ThreadId
from agentvisor.host.threads_read import ThreadReader
from agentvisor.protocol import blobs as codec
from agentvisor.protocol.reads import PAGE_BYTES
from agentvisor.protocol.v1 import journal_pb2, run_pb2, store_pb2, thread_pb2
from agentvisor.protocol.v1.guest_pb2 import Outcome

pytestmark = pytest.mark.flow


async def folded(engine: EngineHost, thread_id: ThreadId) -> None:
    """All that was logged is in the workflow's state."""
    journal = engine.live(thread_id).journal
    journal._settings = type(journal._settings)(fold_threshold=0)
    await engine.call(thread_id, control_write(0, "fold"))
    await until(lambda: not journal.log.entries)


async def test_a_thread_that_was_never_begun_is_not_found(engine: EngineHost) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        await engine.threads.get(new_thread())
    with pytest.raises(NotFound):
        await engine.threads.read(new_thread())
    with pytest.raises(NotFound):
        await ThreadReader(engine.client).blobs(new_thread(), [BlobKey(b"k")])


async def test_what_is_only_in_the_live_log_is_read_with_its_values(engine: EngineHost) -> None:
    thread_id = new_thread()
    for number in range(3):
        await engine.call(thread_id, put(number))
    assert engine.live(thread_id).journal.folds == 0
    thread = await whole(engine.threads, thread_id)
    assert numbers(thread) == {0, 1, 2}
    state = await ThreadReader(engine.client).state(thread_id, thread_pb2.ReadThread())
    assert numbers(state) == set()


async def test_a_value_in_the_log_that_is_a_difference_from_one_in_the_state_is_read(engine: EngineHost) -> None:
    thread_id = new_thread()
    await engine.call(thread_id, put(0, size=4_000))
    await folded(engine, thread_id)
    journal = engine.live(thread_id).journal
    journal._settings = type(journal._settings)(fold_threshold=1 << 30, fold_quiet=60, fold_age=60)
    base_put = put(0, size=4_000).put
    decoded = codec.decode(_record(base_put.blobs[0]), None, 1 << 20)
    base = codec.stored(base_put.blobs[0], decoded, None)
    changed = decoded + b"and a little more"
    blob = codec.encode("bytes", changed, base, codec.Limits())
    assert blob.base == base.key
    request = put(1)
    del request.put.blobs[:]
    request.put.blobs.append(blob)
    request.put.checkpoint.channels[0].key = blob.key
    await engine.call(thread_id, request)
    assert journal.log.entries
    values = await engine.threads.blobs(thread_id, [BlobKey(blob.key)])
    assert values == {BlobKey(blob.key): ("bytes", changed)}


def _record(blob: store_pb2.Blob) -> codec.BlobFields:
    from agentvisor.protocol.convert import blob_from_message

    return blob_from_message(blob)


async def test_records_of_several_pages_are_read_whole(engine: EngineHost) -> None:
    thread_id = new_thread()
    for number in range(8):
        await engine.call(thread_id, put(number))
        await engine.call(thread_id, task_write(number, f"task-{number}", size=180_000 if number < 7 else 700_000))
    await folded(engine, thread_id)
    first = thread_pb2.ReadThreadReply.FromString(
        await engine.client.get_workflow_handle(thread_id).query(
            "read_thread", thread_pb2.ReadThread().SerializeToString(), result_type=bytes
        )
    )
    assert first.cursor
    assert first.ByteSize() < PAGE_BYTES + 100_000
    thread = await whole(engine.threads, thread_id)
    assert numbers(thread) == set(range(8))
    assert all(tasks(thread, number) >= {f"task-{number}"} for number in range(8))


async def test_pages_of_a_state_that_changes_meanwhile_are_read_again(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread_id = new_thread()
    for number in range(3):
        await engine.call(thread_id, put(number))
        await engine.call(thread_id, task_write(number, "task", size=500_000))
    await folded(engine, thread_id)
    reader, asked = ThreadReader(engine.client), list[bytes]()
    query = reader._query

    async def changing(thread: ThreadId, kind: str, argument: bytes) -> bytes:
        asked.append(argument)
        if len(asked) == 2:
            await engine.threads.update_metadata(thread, {"changed": True})
        return await query(thread, kind, argument)

    monkeypatch.setattr(reader, "_query", changing)
    thread = await reader.state(thread_id, thread_pb2.ReadThread())
    assert numbers(thread) == {0, 1, 2}
    assert len(asked) == 4  # two pages, of which the second no longer agreed, and two again


async def test_values_larger_than_a_query_answer_come_in_pages(engine: EngineHost) -> None:
    thread_id = new_thread()
    for number in range(4):
        await engine.call(thread_id, put(number, size=900_000))
    thread = await whole(engine.threads, thread_id)
    assert numbers(thread) == {0, 1, 2, 3}


async def test_the_newest_one_id_and_what_is_before_it(engine: EngineHost) -> None:
    thread_id = new_thread()
    for number in range(6):
        await engine.call(thread_id, put(number))
        await engine.call(thread_id, put(number, namespace="sub|1"))
    await folded(engine, thread_id)
    reader = ThreadReader(engine.client)

    async def read(**asked: object) -> set[tuple[str, str]]:
        thread = await reader.state(thread_id, thread_pb2.ReadThread(**asked))  # type: ignore[arg-type]
        return {(one.namespace, one.checkpoint_id) for one in thread.store.all_checkpoints()}

    assert await read(newest=2, namespace="") == {("", name(5)), ("", name(4))}
    assert await read(checkpoint_id=name(2)) == {("", name(2)), ("sub|1", name(2))}
    assert await read(before=name(1)) == {("", name(0)), ("sub|1", name(0))}
    assert await read(heads=True) == {("", name(5)), ("sub|1", name(5))}
    assert await read(without_checkpoints=True) == set()


async def test_the_values_of_a_session_are_read_through_it_and_after_it_alike(engine: EngineHost) -> None:
    thread_id = new_thread()
    for number in range(3):
        await engine.call(thread_id, put(number))
    during = await engine.call(thread_id, listing())
    live = engine.live(thread_id)
    live.stopping.set()
    await until(lambda: not engine.attempts._live)
    after = await engine.call(thread_id, listing())
    assert during == after
    assert len(after.listed.checkpoints) == 3


async def test_readers_behind_a_busy_workflow_are_answered_all(engine: EngineHost) -> None:
    # Temporal buffers one query behind a workflow task and refuses the others at once.
    thread_id = new_thread()
    await engine.call(thread_id, put(0))
    reads = [engine.threads.read(thread_id, namespace=ROOT) for _ in range(12)]
    changes = [engine.threads.update_metadata(thread_id, {"n": number}) for number in range(5)]
    results = await asyncio.gather(*reads, *changes)
    assert all(numbers(thread) == {0} for thread in results[:12])


async def test_without_temporal_a_read_says_so(temporal: str, engine: EngineHost) -> None:
    from agentvisor.host.temporal_client import connect

    thread_id = new_thread()
    await engine.threads.create(thread_id, {}, exist_ok=False)
    async with proxy_to(temporal) as proxy:
        reader = ThreadReader(await connect(proxy.address, "default"))
        proxy.refuse(DESCRIBE)
        proxy.refuse(QUERY)
        with pytest.raises(Unavailable, match="Temporal did not answer"):
            await reader.read(thread_id, thread_pb2.ReadThread())


async def test_sizes_count_what_was_acknowledged_and_is_only_logged(engine: EngineHost) -> None:
    thread_id, sizes = new_thread(), list[tuple[int, int, int, int]]()
    for number in range(6):
        await engine.call(thread_id, put(number, size=2_000))
        await engine.call(thread_id, task_write(number, "task"))
        found = await engine.threads.storage(thread_id)
        sizes.append((found.checkpoints, found.namespaces, found.blobs, found.pending_writes))
        assert found.history_events
    assert engine.live(thread_id).journal.folds == 0
    assert sizes == [(many, 1, many, many) for many in range(1, 7)]
    logged = await engine.threads.storage(thread_id)
    assert logged.blob_bytes > 6 * 2_000
    assert numbers(await ThreadReader(engine.client).state(thread_id, thread_pb2.ReadThread())) == set()
    await folded(engine, thread_id)
    after = await engine.threads.storage(thread_id)
    assert (after.checkpoints, after.blobs, after.blob_bytes) == (6, 6, logged.blob_bytes)
    assert after.unsheddable_bytes == pytest.approx(logged.unsheddable_bytes, rel=0.1)


async def test_sizes_are_read_again_where_the_state_lags_behind_the_log(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread_id = new_thread()
    await engine.call(thread_id, put(0))
    reader = ThreadReader(engine.client)
    logged, asked = reader._log_in, list[int]()

    async def too_new(description: DescribeWorkflowExecutionResponse) -> journal_pb2.Log | None:
        log = await logged(description)
        assert log is not None
        asked.append(log.first_seq)
        if len(asked) == 1:
            log.first_seq += 5
        return log

    monkeypatch.setattr(reader, "_log_in", too_new)
    assert (await reader.storage(thread_id)).checkpoints == 1
    assert len(asked) == 2


async def test_sizes_of_a_full_namespace_are_those_that_the_workflow_will_keep(temporal: str) -> None:
    async with engine_host(temporal, f"q-{new_thread()}", knobs=Knobs(checkpoint_history=3)) as engine:
        thread_id = new_thread()
        for number in range(6):
            await engine.call(thread_id, put(number))
        assert (await engine.threads.storage(thread_id)).checkpoints == 3


async def test_a_run_of_a_large_input_and_a_large_output_is_read_with_both(temporal: str) -> None:
    async def agent(_agent: ScriptedAgent) -> Outcome:
        return Outcome(kind=Outcome.KIND_COMPLETED, output=json.dumps("o" * 1_200_000).encode())

    thread_id, given = new_thread(), json.dumps("i" * 1_300_000).encode()
    async with engine_host(temporal, f"q-{thread_id}", guests=ScriptedGuests(agent=agent)) as host:
        run_id = await host.start_run(thread_id, "agent", given=given)
        await host.threads.wait_run(thread_id, run_id)
        for run in (
            await host.threads.get_run(thread_id, run_id),
            (await host.threads.whole(thread_id)).runs[run_id],
        ):
            assert run_pb2.RunSpec.FromString(run.spec.body).input == given
            assert len(run.output) == 1_200_002
