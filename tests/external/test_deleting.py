"""Threads deleted, copied, and cut off by crashes: no object is left, and none is taken that somebody needs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
from tests.external.conftest import Place
from tests.external.test_large_values import MB, QUICK, outside
from tests.support.host import Knobs, engine_host, new_thread
from tests.support.large import noise
from tests.support.waiting import until

from agentvisor.core.errors import NotFound, StorageUnavailable
from agentvisor.host.external.backend import Backend
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.threads_copy import copy_head
from agentvisor.protocol.v1 import store_pb2

pytestmark = pytest.mark.flow

CANARY = b"the canary that must be nowhere"


@dataclass
class Interrupted:
    """A real backend that a test can hold up after a write, and cut off in a deletion."""

    real: Backend
    dies_after_put: bool = False
    dies_at_delete: bool = False

    async def put(self, path: str, data: bytes) -> None:
        await self.real.put(path, data)
        if self.dies_after_put:
            await asyncio.Event().wait()

    async def get(self, path: str, start: int, length: int) -> bytes:
        return await self.real.get(path, start, length)

    async def delete(self, paths: Sequence[str]) -> None:
        if self.dies_at_delete:
            await self.real.delete(paths[:1])
            raise OSError("cut off")
        await self.real.delete(paths)

    def list(self, prefix: str) -> AsyncIterator[str]:
        return self.real.list(prefix)


async def test_after_a_delete_no_object_is_left_and_the_id_can_be_used_at_once(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver = outside(host, thread_id)
        for number in range(3):
            await saver.put(number, {"big": CANARY + noise(2 * MB, number)})
        assert len(place.keys()) == 3
        await host.call(thread_id, store_pb2.StoreRequest(delete_thread=store_pb2.DeleteThread()))
        assert place.keys() == []
        await outside(host, thread_id).put(0, {"big": noise(2 * MB, "new")})
        await asyncio.sleep(0)
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB, "new")}
        await host.threads.delete(thread_id)
        await until(lambda: place.keys() == [])


async def test_a_value_on_its_way_while_its_thread_is_deleted_leaves_no_object(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    backend = Interrupted(place.backend())
    knobs = Knobs(heartbeat_timeout=2, idle_heartbeat=0.2)
    async with engine_host(
        temporal, queue, knobs=knobs, external=ExternalStorage(backend, place.url, retry_for=2)
    ) as host:
        await outside(host, thread_id).put(0, {"small": b"1"})
        backend.dies_after_put = True
        putting = asyncio.create_task(outside(host, thread_id).put(1, {"big": CANARY + noise(2 * MB)}))
        await until(lambda: len(place.keys()) == 1)
        backend.dies_after_put = False
        await host.threads.delete(thread_id)
        await until(lambda: place.keys() == [])
        putting.cancel()
        await asyncio.gather(putting, return_exceptions=True)


async def test_a_delete_that_was_cut_off_is_finished_by_the_next(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    backend = Interrupted(place.backend())
    knobs = Knobs(heartbeat_timeout=2, session_idle=0.3)
    storage = ExternalStorage(backend, place.url, retry_for=0.3)
    async with engine_host(temporal, queue, knobs=knobs, external=storage) as host:
        saver = outside(host, thread_id)
        for number in range(3):
            await saver.put(number, {"big": noise(2 * MB, number)})
        backend.dies_at_delete = True
        with pytest.raises(StorageUnavailable):
            await host.threads.delete(thread_id)
        assert place.keys()
        with pytest.raises(NotFound):
            await host.threads.get(thread_id)
        backend.dies_at_delete = False
        await host.threads.delete(thread_id)
        assert place.keys() == []


@pytest.mark.parametrize("deleted", ["original", "copy"])
async def test_a_copy_and_its_original_share_nothing_that_a_delete_could_take(
    temporal: str, queue: str, place: Place, deleted: str
) -> None:
    thread_id, other, value = new_thread(), new_thread(), noise(2 * MB)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": value})
        await outside(host, thread_id).write(0, "task", {"out": noise(2 * MB, "written")})
        copying = store_pb2.StoreRequest(copy_thread=store_pb2.CopyThread(target_thread_id=other))
        await host.call(thread_id, copying)
        head = (await copy_head(host.threads, thread_id)).thread_id
        assert len(place.keys()) == 6
        if deleted == "original":
            await host.threads.delete(thread_id)
            kept = [other, head]
        else:
            await host.threads.delete(other)
            await host.threads.delete(head)
            kept = [thread_id]
        assert len(place.keys()) == 2 * len(kept)
        for one in kept:
            assert await outside(host, one).values() == {"big": value}
            assert await outside(host, one).written() == {"out": noise(2 * MB, "written")}
