"""A list in pages asks for each page alone: twice the checkpoints are twice the questions, and twice the bytes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from google.protobuf.struct_pb2 import Struct
from tests.support.host import EngineHost, new_thread
from tests.support.waiting import until
from tests.support.writing import name, put, task_write

from agentvisor.client.reads import FoundCheckpoint, Query, list_page, start_of_list
from agentvisor.core.ids import ThreadId
from agentvisor.host.outside_reads import OutsideReads
from agentvisor.host.threads_read import ThreadReader
from agentvisor.protocol.v1 import store_pb2

pytestmark = pytest.mark.flow


async def written(engine: EngineHost, checkpoints: int, *, live: bool = False, size: int = 100) -> ThreadId:
    """A thread of a root and of as many namespaces, each with one checkpoint."""
    thread_id = new_thread()
    for number in range(checkpoints // 2):
        await engine.call(thread_id, put(number, size=size))
        await engine.call(thread_id, task_write(number, "task", size=3_000))
        below = put(number, size=size, namespace=f"sub|{number:04}")
        below.put.checkpoint.metadata["odd"] = bool(number % 2)
        await engine.call(thread_id, below)
    if not live:
        engine.live(thread_id).stopping.set()
        await until(lambda: not engine.attempts._live)
    return thread_id


class Asked:
    """What was asked of Temporal."""

    def __init__(self) -> None:
        self.queries = 0
        self.bytes = 0


@asynccontextmanager
async def counted(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Asked]:
    asked, query = Asked(), ThreadReader._query

    async def counting(reader: ThreadReader, thread_id: ThreadId, kind: str, argument: bytes) -> bytes:
        answer = await query(reader, thread_id, kind, argument)
        asked.queries += 1
        asked.bytes += len(answer)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(ThreadReader, "_query", counting)
        yield asked


async def listed(engine: EngineHost, query: Query, *held: ThreadId) -> list[FoundCheckpoint]:
    """As the SDK lists, of a host that holds no session of the thread; `held`: beside what Temporal's list shows."""
    reads = OutsideReads(engine.threads, lambda: held)
    found, cursor = list[FoundCheckpoint](), start_of_list(query)
    while cursor is not None:
        operation = list_page(query.thread, cursor)
        request = next(operation)
        try:
            while True:
                request = operation.send(await answered(reads, request))
        except StopIteration as stop:
            found.extend(stop.value.checkpoints)
            cursor = stop.value.next
    return found


async def answered(reads: OutsideReads, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
    if request.WhichOneof("kind") == "list" and request.list.all_threads:
        return await reads.list_all(request.list)
    return await reads.answer(ThreadId(request.thread_id), request)


def expected(checkpoints: int) -> list[tuple[str, str]]:
    return [
        (name(number), namespace)
        for number in reversed(range(checkpoints // 2))
        for namespace in (f"sub|{number:04}", "")
    ]


def named(found: list[FoundCheckpoint]) -> list[tuple[str, str]]:
    return [(one.name.checkpoint_id, one.name.namespace) for one in found]


@pytest.mark.parametrize("live", [False, True])
async def test_twice_the_checkpoints_are_twice_the_questions(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch, *, live: bool
) -> None:
    small, large = [await written(engine, many, live=live) for many in (96, 192)]
    async with counted(monkeypatch) as of_small:
        found = await listed(engine, Query(small))
    assert named(found) == expected(96)
    assert all(len(one.pending) == (one.name.namespace == "") for one in found)
    async with counted(monkeypatch) as of_large:
        found = await listed(engine, Query(large))
    assert named(found) == expected(192)
    assert of_large.queries <= 2.2 * of_small.queries
    assert of_large.bytes <= 2.2 * of_small.bytes


async def test_twice_the_values_of_a_page_are_twice_the_questions(
    engine: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = [await written(engine, many, size=100_000) for many in (8, 16)]
    async with counted(monkeypatch) as of_small:
        assert len(await listed(engine, Query(small))) == 8
    async with counted(monkeypatch) as of_large:
        assert len(await listed(engine, Query(large))) == 16
    assert of_large.bytes <= 2.2 * of_small.bytes


@pytest.mark.parametrize("live", [False, True])
async def test_a_filter_and_a_limit_hold_across_pages(engine: EngineHost, *, live: bool) -> None:
    thread_id = await written(engine, 80, live=live)
    odd = Struct()
    odd["odd"] = True
    wanted = [one for one in expected(80) if one[1] and int(one[0]) % 2]
    assert named(await listed(engine, Query(thread_id, filter=odd))) == wanted
    assert named(await listed(engine, Query(thread_id, filter=odd, limit=17))) == wanted[:17]
    assert named(await listed(engine, Query(thread_id, before=name(30), limit=40))) == expected(60)[:40]
    assert named(await listed(engine, Query(thread_id, namespace=""))) == [one for one in expected(80) if not one[1]]


async def test_all_threads_are_listed_in_pages_too(engine: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = sorted([await written(engine, 40) for _ in range(2)])
    async with counted(monkeypatch) as asked:
        found = await listed(engine, Query("", all_threads=True), *threads)
    assert [one.name.thread for one in found] == [thread for thread in threads for _ in range(40)]
    assert named(found) == expected(40) * 2
    async with counted(monkeypatch) as of_one:
        await listed(engine, Query(threads[0]))
    assert asked.bytes <= 2.5 * of_one.bytes
    limited = await listed(engine, Query("", all_threads=True, namespace="", limit=23), *threads)
    assert [one.name.thread for one in limited] == [threads[0]] * 20 + [threads[1]] * 3


async def test_what_the_log_puts_between_listed_checkpoints_is_listed_in_its_place(engine: EngineHost) -> None:
    thread_id = await written(engine, 80)
    for number in (0, 17, 39):
        await engine.call(thread_id, put(number, namespace="new"))
    again = put(39, namespace="sub|0039")  # what was odd no longer is
    await engine.call(thread_id, again)
    assert engine.live(thread_id).journal.log.entries
    found = named(await listed(engine, Query(thread_id)))
    assert found == sorted([*expected(80), *((name(number), "new") for number in (0, 17, 39))], reverse=True)
    odd = Struct()
    odd["odd"] = True
    wanted = [one for one in expected(80) if one[1] and int(one[0]) % 2 and int(one[0]) != 39]
    assert named(await listed(engine, Query(thread_id, filter=odd))) == wanted


async def test_a_prune_that_is_only_logged_counts_on_every_page(engine: EngineHost) -> None:
    thread_id = await written(engine, 80)
    prune = store_pb2.StoreRequest(prune=store_pb2.PruneThread(strategy="keep_latest"))
    await engine.call(thread_id, prune)
    assert engine.live(thread_id).journal.log.entries
    found = named(await listed(engine, Query(thread_id)))
    assert found == [one for one in expected(80) if one[1] or one[0] == name(39)]
