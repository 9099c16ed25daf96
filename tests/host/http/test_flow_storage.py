"""Pruning over HTTP, and what a thread says of its size."""

import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def begun(sdk: LangGraphClient, agent: str, given: Any) -> str:
    thread = str(uuid.uuid4())
    await sdk.runs.wait(thread, agent, input=given, if_not_exists="create")
    return thread


async def storage(http: httpx.AsyncClient, thread: str) -> dict[str, Any]:
    response = await http.get(f"/threads/{thread}/storage")
    assert response.status_code == 200, response.text
    return response.json()


async def test_pruning_keeps_the_latest_and_a_waiting_question(sdk: LangGraphClient) -> None:
    asking, done = await begun(sdk, "asking", {"count": 1}), await begun(sdk, "waiting", {"count": 1})
    missing = str(uuid.uuid4())
    assert await sdk.threads.prune([asking, done, missing], strategy="keep_latest") == {"pruned_count": 2}
    assert [len(await sdk.threads.get_history(one)) for one in (asking, done)] == [1, 1]
    assert (await sdk.runs.wait(asking, "asking", command={"resume": "yes"}))["log"] == ["worked", "answer yes"]
    with pytest.raises(NotFoundError):
        await sdk.threads.get(missing)


async def test_pruning_by_delete_removes_threads(sdk: LangGraphClient) -> None:
    one, other = await begun(sdk, "nothing", None), await begun(sdk, "nothing", None)
    assert await sdk.threads.prune([one, one]) == {"pruned_count": 1}
    with pytest.raises(NotFoundError):
        await sdk.threads.get(one)
    assert (await sdk.threads.get(other))["thread_id"] == other


async def test_a_busy_thread_is_not_pruned_and_the_others_are(sdk: LangGraphClient, tmp_path: Path) -> None:
    gate, busy, idle = tmp_path / "gate", str(uuid.uuid4()), await begun(sdk, "waiting", {"count": 1})
    run = await sdk.runs.create(busy, "waiting", input={"gate": str(gate)}, if_not_exists="create")
    await until(gate.with_suffix(".started").exists)
    try:
        with pytest.raises(ConflictError, match=r"busy with run .*\(1 of 2 threads were pruned\)"):
            await sdk.threads.prune([busy, idle], strategy="keep_latest")
    finally:
        gate.touch()
        await sdk.runs.join(busy, run["run_id"])
    assert (len(await sdk.threads.get_history(busy)), len(await sdk.threads.get_history(idle))) == (4, 1)


async def test_an_unknown_strategy_is_refused(sdk: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError):
        await sdk.threads.prune([], strategy="all")  # type: ignore[arg-type]


async def test_a_thread_says_how_much_it_holds(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await begun(sdk, "asking", {"count": 1, "log": ["x" * 50_000]})
    found = await storage(http, thread)
    assert found["limit_bytes"] == 1_800_000
    # The text compresses as a value; the run's input, which a compaction may leave out, carries it too.
    assert found["unsheddable_bytes"] < 10_000 < found["state_bytes"] < 70_000
    assert found["used"] == round(found["unsheddable_bytes"] / 1_800_000, 4)
    assert (found["checkpoints"], found["namespaces"], found["runs"]) == (3, 1, 1)
    assert found["blobs"]["count"] >= 3
    assert found["blobs"]["bytes"] > 100
    assert found["external"] == {"count": 0, "bytes": 0}
    assert found["pending_writes"]["count"] >= 1  # the question
    assert found["history"]["events"] > 5
    assert found["history"]["bytes"] > 500
    assert (found["compactions"], found["left_out"]) == (0, {})
    assert (await http.get(f"/threads/{uuid.uuid4()}/storage")).status_code == 404


async def test_more_state_shows(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await begun(sdk, "waiting", {"count": 1})
    small = await storage(http, thread)
    await sdk.runs.wait(thread, "waiting", input={"log": [uuid.uuid4().hex * 1 for _ in range(2_000)]})
    large = await storage(http, thread)
    assert large["unsheddable_bytes"] > small["unsheddable_bytes"] + 30_000
    assert large["used"] > small["used"]


async def test_metrics_are_served(http: httpx.AsyncClient) -> None:
    response = await http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    for name in (
        "dropped_writes_total",
        "live_attempts",
        "state_share_bucket",
        'ended_attempts_total{ending="paused"}',
    ):
        assert f"agentvisor_{name}" in response.text
