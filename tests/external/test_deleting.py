"""Threads deleted, copied, and cut off by crashes: no object is left, and none is taken that somebody needs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest
from tests.external.conftest import Place
from tests.external.test_large_values import MB, QUICK, outside
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, engine_host, new_thread
from tests.support.large import Saver, noise
from tests.support.object_store import S3
from tests.support.waiting import until

from agentvisor.core.errors import Corrupt, NotFound, StorageUnavailable
from agentvisor.core.ids import ThreadId
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
    """After the first object; later ones do not get that far."""
    has_died: bool = False
    before_list: Callable[[], Awaitable[None]] | None = None
    """Happens once, before the next list."""

    async def put(self, path: str, data: bytes) -> None:
        await self.real.put(path, data)
        if self.dies_after_put:
            await asyncio.Event().wait()

    async def get(self, path: str, start: int, length: int) -> bytes:
        return await self.real.get(path, start, length)

    async def delete(self, paths: Sequence[str]) -> None:
        if self.dies_at_delete:
            if not self.has_died:
                await self.real.delete(paths[:1])
            self.has_died = True
            raise OSError("cut off")
        await self.real.delete(paths)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        happens, self.before_list = self.before_list, None
        if happens is not None:
            await happens()
        async for path in self.real.list(prefix):
            yield path


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


async def test_a_delete_that_was_cut_off_is_finished_though_the_id_was_used_again(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    backend = Interrupted(place.backend())
    storage = ExternalStorage(backend, place.url, retry_for=0.3)
    async with engine_host(temporal, queue, knobs=QUICK, external=storage) as host:
        for number in range(3):
            await outside(host, thread_id).put(number, {"big": CANARY + noise(2 * MB, number)})
        backend.dies_at_delete = True
        with pytest.raises(StorageUnavailable):
            await host.threads.delete(thread_id)
        await outside(host, thread_id).put(0, {"big": noise(2 * MB, "new")})
        second = (await host.threads.get(thread_id)).incarnation
        keys = place.keys()
        assert [key for key in keys if second not in key]
        with pytest.raises(StorageUnavailable):
            await host.threads.delete(thread_id)  # of the second incarnation, and cut off as well
        backend.dies_at_delete = False
        await host.threads.delete(thread_id)
        assert place.keys() == []


async def test_what_a_delete_that_was_cut_off_left_goes_when_the_id_is_used_again(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    backend = Interrupted(place.backend())
    storage = ExternalStorage(backend, place.url, retry_for=0.3)

    async def agent(self: ScriptedAgent) -> None:
        for number in range(3):
            await Saver(self.call).put(number, {"big": CANARY + noise(2 * MB, number)})

    guests = ScriptedGuests(agent=agent)
    async with engine_host(temporal, queue, knobs=QUICK, guests=guests, external=storage) as host:
        await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
        await until(lambda: not storage._tasks)
        backend.dies_at_delete = True
        with pytest.raises(StorageUnavailable):
            await host.threads.delete(thread_id)
        backend.dies_at_delete = False
        await outside(host, thread_id).put(0, {"big": noise(2 * MB, "new")})
        await until(lambda: len(place.keys()) == 1)
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB, "new")}


async def test_objects_of_a_thread_that_temporal_has_forgotten_are_deleted(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    await place.backend().put(f"{thread_id}/an-earlier-one/key.mark.1", CANARY)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await host.threads.delete(thread_id)
        assert place.keys() == []
        with pytest.raises(NotFound):
            await host.threads.delete(thread_id)


async def test_a_thread_that_begins_while_an_earlier_one_of_its_id_is_deleted_keeps_its_objects(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id = new_thread()
    backend = Interrupted(place.backend())
    async with engine_host(
        temporal, queue, knobs=QUICK, external=ExternalStorage(backend, place.url, retry_for=5)
    ) as host:
        await outside(host, thread_id).put(0, {"big": CANARY + noise(2 * MB)})

        async def begin() -> None:
            await outside(host, thread_id).put(0, {"big": noise(2 * MB, "new")})

        backend.before_list = begin
        await host.threads.delete(thread_id)
        await until(lambda: len(place.keys()) == 1)
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB, "new")}


async def test_a_delete_leaves_a_thread_alone_whose_folder_is_within_its_own(
    temporal: str, queue: str, place: Place
) -> None:
    short = ThreadId((new_thread() + "x" * 200)[:200])
    long = ThreadId(short + "-and-more")  # a name that long is folders within folders
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        for thread_id in (short, long):
            await outside(host, thread_id).put(0, {"big": noise(2 * MB, thread_id)})
        await host.threads.delete(short)
        assert len(place.keys()) == 1
        assert await outside(host, long).values() == {"big": noise(2 * MB, long)}


@pytest.mark.parametrize("how", ["prune", "delete_for_runs"])
async def test_what_a_client_outside_removes_is_deleted_while_its_session_is_held(
    temporal: str, queue: str, place: Place, how: str
) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        for number in range(5):
            await Saver(self.call, run_id="of-langgraph").put(number, {"big": noise(2 * MB, number)})

    knobs = Knobs(heartbeat_timeout=2, fold_quiet=0.2, session_idle=600)
    guests = ScriptedGuests(agent=agent)
    async with engine_host(temporal, queue, knobs=knobs, guests=guests, external=place.storage()) as host:
        run_id = await host.start_run(thread_id, "agent")
        await host.threads.wait_run(thread_id, run_id)
        assert len(place.keys()) == 5
        if how == "prune":
            await host.call(thread_id, store_pb2.StoreRequest(prune=store_pb2.PruneThread(strategy="keep_latest")))
        else:
            await host.call(
                thread_id, store_pb2.StoreRequest(delete_for_runs=store_pb2.DeleteForRuns(run_ids=["of-langgraph"]))
            )
        await until(lambda: len(place.keys()) == (1 if how == "prune" else 0))
        if how == "prune":
            assert await outside(host, thread_id).values() == {"big": noise(2 * MB, 4)}


@pytest.mark.parametrize("harm", ["damaged", "gone"])
async def test_a_thread_with_a_damaged_object_is_not_copied(
    temporal: str, queue: str, s3_place: Place, s3: S3, harm: str
) -> None:
    thread_id, other = new_thread(), new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=s3_place.storage()) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"big": noise(2 * MB)})
        await saver.put(1, {"big": noise(2 * MB) + b"a difference"})
        (key,) = s3_place.keys()
        if harm == "damaged":
            s3.write(key, noise(len(s3.read(key)), "other"))
        else:
            s3.delete(key)
        kept = s3_place.keys()
        with pytest.raises(Corrupt, match=key.removeprefix("some/prefix/")):
            await copy_head(host.threads, thread_id)
        with pytest.raises(Corrupt, match=key.removeprefix("some/prefix/")):
            await host.call(thread_id, store_pb2.StoreRequest(copy_thread=store_pb2.CopyThread(target_thread_id=other)))
        await until(lambda: s3_place.keys() == kept)
