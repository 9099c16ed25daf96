"""What HTTP shows of values in external storage that cannot be read: marks and fitting errors, no wrong value."""

from collections.abc import AsyncGenerator
from pathlib import Path
from time import monotonic
from uuid import uuid4

import httpx
import pytest
from tests.host.http.conftest import config_in
from tests.support.large import noise
from tests.support.temporal import free_ports
from tests.support.waiting import until

from agentvisor.host.app import running_host
from agentvisor.host.temporal_client import connect

pytestmark = pytest.mark.flow


class Store:
    """A folder of values that can be taken away, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._away = folder.with_name("away")

    def objects(self, thread: str) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file() and thread in path.parts]

    def take_away(self) -> None:
        self.folder.rename(self._away)

    def bring_back(self) -> None:
        self._away.rename(self.folder)

    def damage(self, thread: str) -> None:
        for path in self.objects(thread):
            path.write_bytes(noise(path.stat().st_size, "other"))

    def named_in(self, text: object, thread: str) -> bool:
        """Whether a text names one of the thread's objects."""
        return any(str(path.relative_to(self.folder)) in str(text) for path in self.objects(thread))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "values")


@pytest.fixture
async def http(temporal: str, queue: str, store: Store, tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    config = config_in(
        tmp_path,
        http__port=free_ports(1)[0],
        temporal__task_queue=queue,
        storage__url=f"file://{store.folder}",
        storage__max_inline_value=1000,
        storage__retry_for="1s",
    )
    async with (
        running_host(config, await connect(temporal, "default")) as host,
        httpx.AsyncClient(base_url=host.url, timeout=30) as client,
    ):
        yield client


async def asked(http: httpx.AsyncClient, *, size: int) -> str:
    """A thread that waits for an answer; its log is as large."""
    thread = f"t-{uuid4().hex}"
    given = {"assistant_id": "asking", "input": {"log": [noise(size).hex()]}, "if_not_exists": "create"}
    (await http.post(f"/threads/{thread}/runs/wait", json=given)).raise_for_status()
    return thread


async def found(http: httpx.AsyncClient, thread: str) -> dict[str, object]:
    (one,) = (await http.post("/threads/search", json={"ids": [thread]})).raise_for_status().json()
    return one


async def test_a_damaged_object_is_shown_as_corrupt_and_not_copied(http: httpx.AsyncClient, store: Store) -> None:
    thread = await asked(http, size=5000)
    store.damage(thread)
    values = (await http.get(f"/threads/{thread}/state")).raise_for_status().json()["values"]
    assert values["count"] == 1
    assert values["log"]["__type__"] == "corrupt"
    assert store.named_in(values["log"]["error"], thread)
    copied = await http.post(f"/threads/{thread}/copy")
    assert (copied.status_code, copied.json()["code"]) == (424, "corrupt")
    assert thread in copied.json()["message"]
    assert store.named_in(copied.json()["message"], thread)
    resuming = {"assistant_id": "asking", "command": {"resume": 1}}
    answered = await http.post(f"/threads/{thread}/runs/wait", json=resuming)
    assert f"channel 'log' of thread {thread}" in answered.text
    assert store.named_in(answered.text, thread)


async def test_a_missing_object_is_shown_as_corrupt_and_not_copied(http: httpx.AsyncClient, store: Store) -> None:
    thread = await asked(http, size=5000)
    for path in store.objects(thread):
        path.unlink()
    values = (await http.get(f"/threads/{thread}/state")).raise_for_status().json()["values"]
    assert (values["count"], values["log"]["__type__"]) == (1, "corrupt")
    assert "is gone" in values["log"]["error"]
    copied = await http.post(f"/threads/{thread}/copy")
    assert (copied.status_code, copied.json()["code"]) == (424, "corrupt")


async def test_threads_are_found_while_the_store_is_down(http: httpx.AsyncClient, store: Store) -> None:
    large, small = await asked(http, size=5000), await asked(http, size=10)
    store.take_away()
    began = monotonic()
    one = await found(http, large)
    assert monotonic() - began < 10
    assert one["status"] == "interrupted"
    assert one["interrupts"]
    values = one["values"]
    assert isinstance(values, dict)
    assert values["count"] == 1
    assert values["log"]["__type__"] == "unavailable"
    assert "does not answer" in values["log"]["error"] or "has not answered" in values["log"]["error"]
    assert (await found(http, small))["values"] == {"count": 1, "log": [noise(10).hex(), "worked"]}
    down = await http.get(f"/threads/{large}/state")
    assert (down.status_code, down.json()["code"]) == (503, "storage_unavailable")
    assert not store.folder.exists()
    store.bring_back()
    assert (await found(http, large))["values"] == {"count": 1, "log": [noise(5000).hex(), "worked"]}


async def test_a_thread_whose_time_to_live_is_over_leaves_no_object(http: httpx.AsyncClient, store: Store) -> None:
    thread, kept = f"t-{uuid4().hex}", await asked(http, size=5_000)
    ttl = {"ttl": 4 / 60, "while_waiting": True}
    (await http.post("/threads", json={"thread_id": thread, "ttl": ttl})).raise_for_status()
    given = {"assistant_id": "asking", "input": {"log": [noise(5_000).hex()]}}
    (await http.post(f"/threads/{thread}/runs/wait", json=given)).raise_for_status()
    assert store.objects(thread)

    async def is_gone() -> bool:
        return (await http.get(f"/threads/{thread}")).status_code == 404 and not store.objects(thread)

    await until(is_gone, seconds=60)
    assert store.objects(kept), "of a thread without a time to live"
