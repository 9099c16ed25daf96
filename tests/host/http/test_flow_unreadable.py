"""A thread whose key a host does not have keeps no other thread from being found, listed, asked about or cancelled."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.host.http.conftest import config_in
from tests.host.http.declared import check_as_it_comes
from tests.support.encryption import encryption
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

from agentvisor.host.app import running_host
from agentvisor.host.temporal_client import client_of

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@asynccontextmanager
async def host_with(
    folder: Path, temporal: TemporalProcess, queue: str, *keys: str
) -> AsyncGenerator[httpx.AsyncClient]:
    named = {"http__port": free_ports(1)[0], "temporal__task_queue": queue, "temporal__address": temporal.address}
    config = config_in(folder, **named).model_copy(update={"encryption": encryption(*keys)})
    hooks = {"response": [check_as_it_comes]}
    async with (
        running_host(config, await client_of(config)) as host,
        httpx.AsyncClient(base_url=host.url, timeout=30, event_hooks=hooks) as client,
    ):
        yield client


async def asks(client: httpx.AsyncClient, thread: str, agent: str, **given: object) -> None:
    body = {"assistant_id": agent, "input": given, "if_not_exists": "create"}
    place = f"/threads/{thread}/runs"
    answer = await client.post(f"{place}/wait" if agent == "asking" else place, json=body)
    assert answer.is_success, answer.text


async def test_a_thread_that_cannot_be_read_is_listed_as_that_beside_all_others(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    queue, gate = f"q-{uuid4().hex[:8]}", str(tmp_path / "gate")
    lost, mine, busy = (f"{name}-{queue}" for name in ("lost", "mine", "busy"))
    async with host_with(tmp_path, temporal, queue, "first") as client:
        await asks(client, lost, "asking")
    async with host_with(tmp_path, temporal, queue, "second") as client:
        await asks(client, mine, "asking")
        await asks(client, busy, "waiting", gate=gate)
        statuses = {lost: "error", mine: "interrupted", busy: "busy"}

        async def all_are_found() -> bool:
            found = (await client.post("/threads/search", json={})).json()
            return {one["thread_id"]: one["status"] for one in found} == statuses

        await until(all_are_found)
        found = {one["thread_id"]: one for one in (await client.post("/threads/search", json={})).json()}
        assert found[lost]["error"]["error"] == "Sealed"
        assert "'first', which this host does not have" in found[lost]["error"]["message"]
        sorted_ones = await client.post("/threads/search", json={"sort_by": "created_at", "status": "interrupted"})
        assert [(one["thread_id"], one["status"]) for one in sorted_ones.json()] == [
            (mine, "interrupted"),
            (lost, "interrupted"),
        ]
        assert (await client.post("/threads/search", json={"values": {"nothing": 1}})).json() == []
        assert [one["thread_id"] for one in (await client.get("/interrupts")).json()] == [mine]
        assert {one["thread_id"] for one in (await client.post("/runs/search", json={})).json()} == {mine, busy}
        assert (await client.get(f"/threads/{lost}")).status_code == 503
        assert (await client.post("/runs/cancel", json={"status": "all"})).status_code == 204
