"""Saves and thread state with external storage: what is large goes there, and is deleted with what named it."""

from pathlib import Path

import pytest
from tests.external.conftest import folder_place
from tests.external.test_large_values import MB, QUICK
from tests.support.host import engine_host, new_thread
from tests.support.large import noise
from tests.support.state_writer import Writer
from tests.support.waiting import until

from agentvisor.client.known import Known
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1.store_pb2 import DeleteThread, StoreRequest

pytestmark = pytest.mark.flow


async def test_large_saves_and_values_go_outside_come_back_and_go_with_their_thread(
    temporal: str, queue: str, tmp_path: Path
) -> None:
    place = folder_place(tmp_path / "values")
    large = {name: noise(int(1.2 * MB), name).hex() for name in ("set", "item", "save")}
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        one = Writer(host, new_thread(), None, Known(), Limits(max_stored_bytes=64 * MB))
        await one.set("k", large["set"])
        await one.append("list", "small")
        await one.append("list", large["item"])
        made = await one.save("plan", large["save"])
        fresh = one._replace(known=Known())
        assert await fresh.get("k") == large["set"]
        assert await fresh.get("list") == ["small", large["item"]]
        assert await fresh.load(made) == large["save"]
        assert len(place.keys()) >= 2  # what the thread has room for may stay in it
        assert (await host.threads.storage(one.thread_id)).state_bytes < 1_800_000
        assert await one.do(one.state.delete(one.at("list"), None))
        await one.set("k", "small")
        assert await fresh._replace(known=Known()).load() == large["save"]
        await one.call(StoreRequest(delete_thread=DeleteThread()))
        await until(lambda: place.keys() == [])
