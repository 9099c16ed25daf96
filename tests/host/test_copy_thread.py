"""The saver's copy of a whole thread: all checkpoints, ids, parents, writes; also where it is over one payload."""

import asyncio
from uuid import uuid4

import ormsgpack
import pytest
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.waiting import until
from tests.support.writing import control_value, control_write, put, task_write

from agentvisor.core.errors import Conflict, NotFound
from agentvisor.core.ids import ROOT, ThreadId
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.threads_copy import copy_head
from agentvisor.protocol import blobs
from agentvisor.protocol.v1.store_pb2 import (
    CopyThread,
    DeltaHistory,
    PruneThread,
    PutCheckpoint,
    StoreRequest,
    TaskWrites,
    Write,
)

pytestmark = pytest.mark.flow


def copying(target: ThreadId) -> StoreRequest:
    return StoreRequest(copy_thread=CopyThread(target_thread_id=target))


def records(store: Store) -> object:
    """All that a copy must have."""
    return (
        store.checkpoints,
        {key: store.pending(key) for key in store.tasks},
        store.bones,
        store.heads,
    )


async def written(host: EngineHost, thread: ThreadId, count: int, size: int) -> Thread:
    """A thread with checkpoints in two namespaces, writes of every kind, and one whose checkpoint has not come."""
    for number in range(count):
        await host.call(thread, put(number, size=size))
        await host.call(thread, task_write(number, "a"))
        await host.call(thread, task_write(number, "b"))
        await host.call(thread, control_write(number, f"answer {number}"))
        await host.call(thread, put(number, size=100, namespace="child:1"))
    await host.call(thread, task_write(count + 5, "early"))
    return await whole(host.threads, thread)


async def test_a_thread_larger_than_one_payload_is_copied_whole_and_goes_on_alone(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source, target = new_thread(), new_thread()
        before = await written(host, source, 5, 600_000)
        await host.call(source, copying(target))
        copy = await whole(host.threads, target)
        assert records(copy.store) == records(before.store)
        assert sorted(map(len, copy.store.checkpoints.values())) == [5, 5]
        await host.threads.delete(source)
        await host.call(target, put(5))
        assert len((await whole(host.threads, target)).store.checkpoints) == 2
        with pytest.raises(NotFound):
            await host.threads.get(source)


async def test_a_client_writes_on_while_its_thread_is_made_smaller(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        thread = new_thread()
        for number in range(10):  # past the 4 MB at which Temporal wants a new execution
            await host.call(thread, put(number, size=600_000))

        async def smaller() -> bool:
            return (await host.threads.get(thread)).compactions >= 1

        await until(smaller)
        found = await host.threads.get(thread)
        assert found.left_out
        head = found.store.get(ROOT)
        assert head is not None
        assert head.checkpoint.checkpoint_id == "00000009"
        key = head.checkpoint.channels["value"]
        assert key is not None
        assert len((await host.threads.blobs(thread, [key]))[key][1]) == 600_000


async def test_a_copy_survives_the_end_of_its_session_and_a_compaction(temporal: str) -> None:
    knobs = Knobs(session_idle=0.3, compact_events=20)
    async with engine_host(temporal, f"copy-{uuid4()}", knobs=knobs) as host:
        source, target = new_thread(), new_thread()
        before = await written(host, source, 6, 50_000)
        await host.call(source, copying(target))

        async def over() -> bool:
            return (await host.threads.get(target)).active is None

        await until(over)
        for number in range(10):
            await host.threads.update_metadata(target, {"number": number})

        async def compacted() -> bool:
            return (await host.threads.get(target)).compactions > 0

        await until(compacted)
        assert records((await whole(host.threads, target)).store) == records(before.store)


async def test_where_there_is_something_already_nothing_is_mixed(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source, target = new_thread(), new_thread()
        await written(host, source, 2, 100)
        await host.call(target, put(7))
        with pytest.raises(Conflict, match="holds checkpoints already"):
            await host.call(source, copying(target))
        with pytest.raises(Conflict):
            await host.call(source, copying(source))
        assert len((await whole(host.threads, target)).store.checkpoints) == 1


async def test_a_copy_that_was_made_is_made_again_until_it_goes_its_own_way(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source, target = new_thread(), new_thread()
        before = await written(host, source, 2, 100)
        for _ in range(2):
            await host.call(source, copying(target))
            assert records((await whole(host.threads, target)).store) == records(before.store)
        await host.call(target, control_write(1, "answered in the copy"))
        with pytest.raises(Conflict):
            await host.call(source, copying(target))
        assert control_value(await whole(host.threads, target), 1) == "answered in the copy"


async def test_a_copy_of_nothing_makes_nothing(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        target = new_thread()
        with pytest.raises(NotFound):
            await host.call(new_thread(), copying(target))
        with pytest.raises(NotFound):
            await host.threads.get(target)


async def test_a_copy_that_was_cut_off_is_made_again(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source, target = new_thread(), new_thread()
        before = await written(host, source, 4, 350_000)
        first = asyncio.create_task(host.call(source, copying(target)))

        async def begun() -> bool:
            try:
                return (await host.threads.storage(target)).blobs > 0
            except NotFound:
                return False

        await until(begun)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await host.call(source, copying(target))
        assert records((await whole(host.threads, target)).store) == records(before.store)


def delta_put(number: int) -> StoreRequest:
    """A checkpoint whose channel is a delta channel that holds nothing itself."""
    request = put(number)
    checkpoint = request.put.checkpoint
    checkpoint.channels.add(channel="items")
    checkpoint.metadata.update({"counters_since_delta_snapshot": {"items": [number, number]}})
    return StoreRequest(put=PutCheckpoint(checkpoint=checkpoint, blobs=request.put.blobs))


def delta_write(number: int) -> StoreRequest:
    write = Write(idx=0, channel="items", type="bytes", data=f"item {number}".encode(), is_state=True)
    task = TaskWrites(checkpoint_id=put(number).put.checkpoint.checkpoint_id, task_id=f"t{number}", writes=[write])
    return StoreRequest(put_writes=task)


async def items(host: EngineHost, thread: ThreadId) -> list[bytes]:
    reply = await host.call(thread, StoreRequest(delta_history=DeltaHistory(channels=["items"])))
    (channel,) = reply.delta_history.channels
    return [write.data for task in channel.writes for write in task.writes]


async def test_what_delta_channels_are_made_of_comes_along_though_its_checkpoints_are_pruned(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source, target = new_thread(), new_thread()
        for number in range(6):
            await host.call(source, delta_put(number))
            await host.call(source, delta_write(number))
        await host.call(source, StoreRequest(prune=PruneThread(strategy="keep_latest")))
        expected = [f"item {number}".encode() for number in range(5)]
        assert await items(host, source) == expected
        await host.call(source, copying(target))
        assert await items(host, target) == expected
        await host.threads.delete(source)
        await host.call(target, delta_put(6))
        assert await items(host, target) == [*expected, b"item 5"]
        store = (await whole(host.threads, target)).store
        assert sum(map(len, store.checkpoints.values())) == 2
        assert store.bones


@pytest.mark.parametrize("channel", ["branch:to:work", "__start__", "__pregel_tasks"])
async def test_a_copy_of_work_that_nobody_has_told_of_yet_is_interrupted(temporal: str, channel: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        source = new_thread()
        await host.call(source, holding(channel, [{"node": "work"}]))
        copy = await copy_head(host.threads, source)
        assert (await host.threads.get(copy.thread_id)).status is ThreadStatus.INTERRUPTED


async def test_a_copy_of_what_has_come_to_its_end_is_idle(temporal: str) -> None:
    async with engine_host(temporal, f"copy-{uuid4()}") as host:
        for channel, value in (("__pregel_tasks", []), ("messages", ["hello"])):
            source = new_thread()
            await host.call(source, holding(channel, value))
            copy = await copy_head(host.threads, source)
            assert (await host.threads.get(copy.thread_id)).status is ThreadStatus.IDLE


def holding(channel: str, value: object) -> StoreRequest:
    """A checkpoint with one channel, before its agent has said what comes next."""
    request = put(0)
    blob = blobs.encode("msgpack", ormsgpack.packb(value), None, blobs.Limits())
    del request.put.blobs[:]
    request.put.blobs.append(blob)
    request.put.checkpoint.channels[0].channel, request.put.checkpoint.channels[0].key = channel, blob.key
    return request
