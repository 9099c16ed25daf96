"""Threads that live only so long: swept after their last use, and never while a run or a person is at it."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

from agentvisor.host.temporal_client import connect

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

SOON = 1.5 / 60
"""Minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def temporal_client(temporal: TemporalProcess) -> AsyncGenerator[Client]:
    yield await connect(temporal.address, "default")


async def created(http: httpx.AsyncClient, ttl: Any, **fields: Any) -> str:
    answer = await http.post("/threads", json={"ttl": ttl, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["thread_id"]


async def shown(sdk: LangGraphClient, thread: str) -> Any:
    return (await sdk.threads.get(thread, include=["ttl"]))["ttl"]  # type: ignore[typeddict-item]


async def is_gone(sdk: LangGraphClient, thread: str) -> bool:
    try:
        await sdk.threads.get(thread)
    except NotFoundError:
        return True
    return False


async def test_a_ttl_is_shown_changed_and_taken_away(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await created(http, 60)
    ttl = await shown(sdk, thread)
    seconds = datetime.fromisoformat(ttl.pop("expires_at")).timestamp() - datetime.now().timestamp()  # noqa: DTZ005
    assert 3500 < seconds <= 3600
    assert ttl == {"strategy": "delete", "ttl_minutes": 60, "while_waiting": False}
    await sdk.threads.update(thread, metadata={"a": 1}, ttl={"ttl": 30, "strategy": "keep_latest"})
    assert (await shown(sdk, thread))["ttl_minutes"] == 30
    assert (await http.patch(f"/threads/{thread}", json={"ttl": None})).json()["metadata"] == {"a": 1}
    assert await shown(sdk, thread) is None
    for wrong in (0, -1, {"ttl": 5, "strategy": "burn"}, {"strategy": "delete"}, "soon"):
        assert (await http.post("/threads", json={"ttl": wrong})).status_code == 422
    assert (await http.get(f"/threads/{thread}?include=all")).status_code == 422


async def test_a_thread_whose_time_is_over_at_once_is_shown_as_it_began(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    made = await asyncio.gather(
        *(http.post("/threads", json={"ttl": 0.00002, "metadata": {"a": 1}}) for _ in range(12))
    )
    assert {one.status_code for one in made} == {200}
    assert all(one.json()["metadata"] == {"a": 1} and one.json()["status"] == "idle" for one in made)
    await until(lambda: is_gone(sdk, made[0].json()["thread_id"]), seconds=30)


async def test_a_thread_that_nobody_uses_is_deleted_and_leaves_nothing(
    sdk: LangGraphClient, http: httpx.AsyncClient, temporal_client: Client
) -> None:
    thread = await created(http, SOON)
    await sdk.runs.wait(thread, "waiting", input={"count": 1})
    await until(lambda: is_gone(sdk, thread), seconds=30)

    async def is_erased() -> bool:
        try:
            await temporal_client.get_workflow_handle(thread).describe()
        except RPCError:
            return True
        return False

    await until(is_erased, seconds=60)


async def test_a_run_puts_the_end_off_and_a_question_stops_the_clock(
    sdk: LangGraphClient, http: httpx.AsyncClient, tmp_path: Path, temporal_client: Client
) -> None:
    busy, asks, swept = [await created(http, SOON) for _ in range(3)]
    gate = tmp_path / "gate"
    run = await sdk.runs.create(busy, "waiting", input={"count": 1, "gate": str(gate)})
    await sdk.runs.wait(asks, "asking", input={"count": 1})
    # By then the others are long due.
    await until(lambda: is_gone(sdk, swept), seconds=30)
    assert (await shown(sdk, busy))["expires_at"] is None
    assert (await shown(sdk, asks))["expires_at"] is None
    for thread in (busy, asks):
        described = await temporal_client.get_workflow_handle(thread).describe()
        assert described.status is WorkflowExecutionStatus.RUNNING
    await sdk.threads.update(asks, metadata={}, ttl={"ttl": SOON, "strategy": "delete", "while_waiting": True})
    gate.touch()
    assert (await sdk.runs.join(busy, run["run_id"]))["count"] == 2  # type: ignore[call-overload]
    await until(lambda: is_gone(sdk, busy), seconds=30)
    await until(lambda: is_gone(sdk, asks), seconds=30)


async def test_keep_latest_drops_older_checkpoints_once_for_each_use(
    sdk: LangGraphClient, http: httpx.AsyncClient, temporal_client: Client
) -> None:
    thread = await created(http, {"ttl": SOON, "strategy": "keep_latest"})
    for _ in range(2):
        await sdk.runs.wait(thread, "waiting", input={"count": 1})
    assert len(await sdk.threads.get_history(thread)) > 2

    async def is_pruned() -> bool:
        return len(await sdk.threads.get_history(thread)) == 1

    await until(is_pruned, seconds=30)
    assert (await sdk.threads.get_state(thread))["values"]["count"] == 2  # type: ignore[index,call-overload]
    assert (await shown(sdk, thread))["expires_at"] is None

    await sdk.runs.wait(thread, "waiting", input={"count": 1})
    await until(is_pruned, seconds=30)
