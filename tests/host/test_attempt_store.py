"""What an attempt's store takes, refuses and orders before anything is journalled; in a session on a real server."""

import asyncio

import pytest
from tests.support.host import EngineHost, new_thread, whole
from tests.support.waiting import until
from tests.support.writing import control_write, name, numbers, projection, put, task_write, tasks

from agentvisor.core.errors import Corrupt, InvalidInput, PermissionRefused, StateTooLarge, ValueTooLarge
from agentvisor.core.ids import ROOT, ThreadId
from agentvisor.core.records import Checkpoint, Operation, PutBlobs
from agentvisor.host.attempt_store import AttemptStore
from agentvisor.host.journal import Urgency
from agentvisor.protocol.convert import operation_from_bytes
from agentvisor.protocol.v1.store_pb2 import DeleteThread, GetBlobs, GetCheckpoint, Projection, StoreReply, StoreRequest

pytestmark = pytest.mark.flow


async def opened(engine: EngineHost) -> tuple[ThreadId, AttemptStore]:
    thread_id = new_thread()
    await engine.call(thread_id, put(0))
    return thread_id, engine.live(thread_id).store.result()


async def test_a_checkpoint_that_names_a_value_of_a_put_under_way_waits_for_it(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The large value is checked beside the event loop; a second put that names it must not be in the log before it.
    thread_id, store = await opened(engine)
    logged = list[Operation]()
    append = store._journal.append

    def noted(entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:
        logged.extend(map(operation_from_bytes, entries))
        return append(entries, urgency)

    monkeypatch.setattr(store._journal, "append", noted)
    first = put(1, size=900_000)
    second = put(2)
    del second.put.blobs[:]
    second.put.checkpoint.channels[0].key = first.put.blobs[0].key
    await asyncio.gather(store.call(first), store.call(second))
    value = next(at for at, one in enumerate(logged) if isinstance(one, PutBlobs))
    namers = [at for at, one in enumerate(logged) if isinstance(one, Checkpoint)]
    assert value < min(namers)
    assert numbers(await whole(engine.threads, thread_id)) == {0, 1, 2}


async def test_a_checkpoint_that_names_a_value_of_a_put_that_was_refused_is_refused_too(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    first = put(1, size=900_000)
    first.put.checkpoint.record = b"x" * 100
    first.put.blobs.append(put(9, size=400_000).put.blobs[0])
    first.put.blobs[-1].key = b"\0" * 32
    second = put(2)
    del second.put.blobs[:]
    second.put.checkpoint.channels[0].key = first.put.blobs[0].key
    results = await asyncio.gather(store.call(first), store.call(second), return_exceptions=True)
    assert [type(one) for one in results] == [Corrupt, Corrupt]
    await store.call(put(3))
    assert numbers(await whole(engine.threads, thread_id)) == {0, 3}


async def test_a_value_that_the_thread_does_not_have_is_refused_with_its_channels_name(engine: EngineHost) -> None:
    _, store = await opened(engine)
    request = put(1)
    del request.put.blobs[:]
    with pytest.raises(Corrupt, match="'value'") as refused:
        await store.call(request)
    assert refused.value.details["channel"] == "value"


async def test_a_value_whose_bytes_are_not_what_its_key_says_is_refused(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    request = put(1)
    request.put.blobs[0].data = request.put.blobs[0].data[:-1] + b"!"
    with pytest.raises(Corrupt):
        await store.call(request)
    await store.call(put(1))
    assert numbers(await whole(engine.threads, thread_id)) == {0, 1}


async def test_too_large_values_writes_records_and_projections_are_refused_and_nothing_is_stored(
    engine: EngineHost,
) -> None:
    thread_id, store = await opened(engine)
    large_record = put(1)
    large_record.put.checkpoint.record = b"r" * 600_000
    many = StoreRequest(project=Projection(checkpoint_id=name(0), next=["node" * 1_000] * 200))
    for request, says in (
        (put(1, size=1_600_000), r"max_inline_value"),
        (control_write(0, "a" * 1_600_000), r"'__resume__'"),
        (large_record, r"record|without its values"),
        (many, r"comes next"),
    ):
        with pytest.raises(ValueTooLarge, match=says):
            await store.call(request)
    thread = await whole(engine.threads, thread_id)
    assert numbers(thread) == {0}
    assert not tasks(thread, 0)


async def test_what_no_compaction_could_carry_is_refused_be_it_values_or_writes(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    await store.call(put(1, size=1_000_000))
    with pytest.raises(StateTooLarge, match=r"max_state"):
        await store.call(control_write(1, "a" * 900_000))
    await store.call(task_write(1, "large", size=900_000))  # a regular one is dropped, which is never an error (S5)
    await store.call(task_write(1, "small", size=1_000))
    with pytest.raises(StateTooLarge, match=r"max_state"):
        await store.call(put(1, size=1_000_000, namespace="sub|1"))
    thread = await whole(engine.threads, thread_id)
    assert numbers(thread) == {0, 1}
    assert tasks(thread, 1) == {"small"}


async def test_a_head_that_takes_the_place_of_a_large_one_is_not_counted_beside_it(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    for number in range(1, 4):
        await store.call(put(number, size=1_200_000))
    assert numbers(await whole(engine.threads, thread_id)) == {0, 1, 2, 3}


async def test_a_projection_goes_with_the_next_commit_and_is_there_for_readers(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    await store.call(projection(0))
    await store.call(put(1))
    thread = await engine.threads.read(thread_id)
    found = thread.store.get(ROOT, name(0))
    assert found is not None
    assert thread.store.projections[found.checkpoint.key].next == ("node",)


async def test_an_agent_may_not_delete_its_thread_and_unknown_requests_are_told(engine: EngineHost) -> None:
    _, store = await opened(engine)
    with pytest.raises(PermissionRefused):
        await store.call(StoreRequest(delete_thread=DeleteThread()))
    with pytest.raises(InvalidInput, match="older than the SDK"):
        await store.call(StoreRequest())
    nameless = put(1)
    nameless.put.checkpoint.checkpoint_id = ""
    with pytest.raises(InvalidInput, match="needs an id"):
        await store.call(nameless)


async def test_the_next_attempt_reads_what_it_did_not_see_written(engine: EngineHost) -> None:
    thread_id, store = await opened(engine)
    await store.call(put(1, size=500_000))
    engine.live(thread_id).stopping.set()
    await until(lambda: not engine.attempts._live)
    await engine.call(thread_id, put(2))
    again = engine.live(thread_id).store.result()
    assert again is not store
    key = put(1, size=500_000).put.blobs[0].key
    reply: StoreReply = await again.call(StoreRequest(get_blobs=GetBlobs(keys=[key])))
    assert [one.key for one in reply.blobs.blobs] == [key]
    assert (await again.call(StoreRequest(get=GetCheckpoint(checkpoint_id=name(0))))).found.HasField("tuple")
