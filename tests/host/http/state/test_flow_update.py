"""update_state over HTTP: what LangGraph's own does in one process, durable, and as a whole or not at all (S29)."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from tests.host.http.state.conftest import normal
from tests.support.waiting import until

from agentvisor.core.ids import ThreadId
from agentvisor.host.app import Host

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

Travellers = Callable[[str], Awaitable[tuple[Any, Any]]]


def latest_with(states: list[dict[str, Any]], following: list[str]) -> dict[str, Any]:
    """Where the newest state is that goes on with these nodes."""
    return next(one["checkpoint"] for one in states if [*one["next"]] == following)


async def values_as_the_last_node(one: Any) -> None:
    await one.run({"count": 1})
    await one.update({"count": 7})


async def values_as_a_node(one: Any) -> None:
    await one.run({"count": 1})
    await one.update({"log": ["mine"]}, "ask")
    await one.run(None)


async def nothing_as_a_node(one: Any) -> None:
    await one.run({"count": 1})
    await one.update(None, "ask")


async def the_end(one: Any) -> None:
    await one.run({"count": 1})
    await one.update(None, "__end__")
    await one.update({"count": 5}, "work")


async def a_copy(one: Any) -> None:
    await one.run({"count": 1})
    at = latest_with(await one.history(), ["work"])
    await one.update(None, "__copy__", at=at)
    await one.run(None)


async def a_copy_with_updates(one: Any) -> None:
    await one.run({"count": 1})
    await one.update(
        [[{"count": 40, "log": ["copied"]}, "work"]], "__copy__", at=latest_with(await one.history(), ["work"])
    )


async def an_input(one: Any) -> None:
    await one.run({"count": 1})
    await one.update({"count": 9}, "__input__")
    await one.run(None)
    await one.resume("yes")


async def a_fork_from_the_past(one: Any) -> None:
    await one.run({"count": 1})
    await one.resume("yes")
    reached = await one.update({"count": 30}, "work", at=latest_with(await one.history(), ["ask"]))
    await one.run(None, at=reached["checkpoint"])
    await one.resume("again")


async def a_run_from_the_past(one: Any) -> None:
    await one.run({"count": 1})
    await one.resume("yes")
    await one.run(None, at=latest_with(await one.history(), ["work"]))


async def an_answer_at_the_head_by_its_id(one: Any) -> None:
    await one.run({"count": 1})
    await one.resume("yes", at=(await one.history())[0]["checkpoint"])


async def a_state_before_any_run(one: Any) -> None:
    await one.update({"count": 3}, "work")
    await one.run(None)


@pytest.mark.parametrize(
    "travel",
    [
        values_as_the_last_node, values_as_a_node, nothing_as_a_node, the_end, a_copy, a_copy_with_updates, an_input,
        a_fork_from_the_past, a_run_from_the_past, an_answer_at_the_head_by_its_id, a_state_before_any_run,
    ],
)  # fmt: skip
async def test_it_is_what_langgraph_does_in_one_process(
    travellers: Travellers, travel: Callable[[Any], Awaitable[None]]
) -> None:
    remote, oracle = await travellers("line")
    await travel(remote)
    await travel(oracle)
    assert normal(await remote.history()) == normal(await oracle.history())
    assert normal([await remote.state()]) == normal([await oracle.state()])


async def test_an_update_that_sends_gives_the_tasks_that_follow(travellers: Travellers) -> None:
    remote, oracle = await travellers("fanning")
    for one in (remote, oracle):
        await one.update({"count": 2}, "work")
    assert normal(await remote.history()) == normal(await oracle.history())
    for one in (remote, oracle):
        await one.run(None)
    assert normal(await remote.history()) == normal(await oracle.history())


async def test_the_answer_names_the_new_checkpoint_and_the_thread_shows_it(
    travellers: Travellers, sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    remote, _ = await travellers("line")
    await remote.run({"count": 1})
    before = await sdk.threads.get(remote.id)
    assert (before["status"], len(before["interrupts"])) == ("interrupted", 1)
    answer = await remote.update({"count": 7})
    state = await sdk.threads.get_state(remote.id)
    assert answer["checkpoint"] == answer["configurable"] == state["checkpoint"]
    assert answer["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
    assert state["metadata"] == {
        "graph_id": "line", "source": "update", "step": 2, "parents": {},
    }  # fmt: skip
    shown = await sdk.threads.get(remote.id)
    assert (shown["status"], shown["values"], shown["interrupts"]) == (
        "interrupted",
        {"count": 7, "log": ["worked"]},
        {},
    )
    assert shown["state_updated_at"] > before["state_updated_at"]
    assert len(await sdk.runs.list(remote.id)) == 1
    await remote.update(None, "__end__")
    assert (await sdk.threads.get(remote.id))["status"] == "idle"
    assert (await http.get(f"/threads/{remote.id}/interrupts")).json() == []


async def test_what_an_update_was_made_of_is_not_kept_beside_what_it_made(travellers: Travellers, host: Host) -> None:
    remote, _ = await travellers("line")
    await remote.update({"log": ["words " * 1000]}, "work")
    thread_id = ThreadId(remote.id)
    (update,) = (await host.threads.get(thread_id)).runs.values()
    whole = await host.threads.get_run(thread_id, update.run_id)
    assert (whole.is_update, whole.status.name, len(whole.spec.body) < 500) == (True, "SUCCESS", True)


async def test_an_update_ends_what_a_failed_run_has_left(travellers: Travellers, sdk: LangGraphClient) -> None:
    remote, _ = await travellers("failing")
    await remote.run({"count": 1})
    assert (await sdk.threads.get(remote.id))["status"] == "error"
    await remote.update({"log": ["fixed"]}, "fail")
    shown = await sdk.threads.get(remote.id)
    assert (shown["status"], shown["error"], shown["values"]) == (
        "idle",
        None,
        {"count": 2, "log": ["worked", "fixed"]},
    )


REFUSED = [
    (400, "nope does not exist", {"values": {"count": 1}, "as_node": "nope"}),
    (400, "Expected dict", {"values": [{"count": 1}, {"log": []}], "as_node": "work"}),
    (404, "no checkpoint in the namespace 'child:1'", {"values": {}, "checkpoint": {"checkpoint_ns": "child:1"}}),
    (400, "Cannot copy", {"values": None, "as_node": "__copy__"}),
    (404, "checkpoint 'c' does not exist", {"values": {"count": 1}, "checkpoint_id": "c"}),
    (404, "does not exist", {"values": {"count": 1}, "checkpoint": {"checkpoint_ns": "x:1", "checkpoint_id": "c"}}),
    (422, "values", {"values": "text"}),
    (422, "as_node", {"values": {"count": 1}, "as_node": 5}),
    (422, "bogus: unknown field", {"values": {"count": 1}, "bogus": 1}),
    (422, "another thread", {"values": {"count": 1}, "checkpoint": {"thread_id": "other", "checkpoint_id": "c"}}),
]


async def test_what_is_refused_changes_nothing(travellers: Travellers, http: httpx.AsyncClient) -> None:
    remote, _ = await travellers("line")
    for status, says, body in REFUSED:
        response = await http.post(f"/threads/{remote.id}/state", json=body)
        assert (response.status_code, says in response.json()["detail"]) == (status, True), response.text
    assert await remote.history() == []
    await remote.run({"count": 1})
    before = await remote.history()
    for status, _says, body in REFUSED[:2]:
        assert (await http.post(f"/threads/{remote.id}/state", json=body)).status_code == status
    assert await remote.history() == before
    await remote.resume("yes")
    assert (await remote.history())[0]["values"]["log"] == ["worked", "answer yes", "last"]


async def test_a_thread_without_a_graph_says_what_it_needs(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    async def refusal(**metadata: str) -> tuple[int, str]:
        thread = await sdk.threads.create(metadata=metadata)
        response = await http.post(f"/threads/{thread['thread_id']}/state", json={"values": {"count": 1}})
        return response.status_code, response.json()["detail"]

    status, says = await refusal()
    assert (status, "metadata.graph_id" in says) == (400, True)
    status, says = await refusal(graph_id="nobody")
    assert (status, "nobody" in says) == (422, True)
    status, says = await refusal(graph_id="plain")
    assert (status, "no LangGraph graph (function)" in says) == (422, True)
    status, says = await refusal(graph_id="broken")
    assert (status, "no_such_module" in says) == (424, True)
    response = await http.post(f"/threads/{uuid4()}/state", json={"values": {"count": 1}})
    assert response.status_code == 404


async def pids(gate: Path) -> list[int]:
    told = gate.with_suffix(".pids")
    return [*map(int, told.read_text().split())] if told.exists() else []


async def in_the_middle(gate: Path, attempts: int) -> int:
    async def is_there() -> bool:
        return len(await pids(gate)) == attempts

    await until(is_there)
    return (await pids(gate))[-1]


async def test_an_update_whose_process_is_killed_is_made_once(travellers: Travellers, tmp_path: Path) -> None:
    remote, _ = await travellers("gating")
    await remote.run({"log": ["began"]})
    before = await remote.history()
    gate = tmp_path / "gate"
    update = asyncio.create_task(remote.update({"log": [f"gate {gate}"]}, "note"))
    os.kill(await in_the_middle(gate, 1), signal.SIGKILL)
    await in_the_middle(gate, 2)
    assert await remote.history() == before
    gate.touch()
    answer = await update
    after = await remote.history()
    assert after[1:] == before
    assert after[0]["checkpoint"] == answer["checkpoint"]
    assert after[0]["values"] == {"log": ["began", "noted", f"gate {gate}"]}


async def test_an_update_that_is_killed_again_and_again_changes_nothing(
    travellers: Travellers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    remote, _ = await travellers("gating")
    await remote.run({"log": ["began"]})
    before, gate = await remote.history(), tmp_path / "gate"
    body = {"values": {"log": [f"gate {gate}"]}, "as_node": "note"}
    update = asyncio.create_task(http.post(f"/threads/{remote.id}/state", json=body))
    for attempt in range(1, 5):
        os.kill(await in_the_middle(gate, attempt), signal.SIGKILL)
    response = await update
    assert (response.status_code, "given up" in response.json()["detail"]) == (503, True), response.text
    assert await remote.history() == before
    await remote.update({"log": ["more"]}, "note")
    assert (await remote.history())[0]["values"] == {"log": ["began", "noted", "more"]}


async def test_one_at_a_time_a_run_waits_for_an_update_and_an_update_is_refused_beside_a_run(
    travellers: Travellers, sdk: LangGraphClient, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    remote, _ = await travellers("gating")
    gate = tmp_path / "gate"
    update = asyncio.create_task(remote.update({"log": [f"gate {gate}"]}, "note"))
    await in_the_middle(gate, 1)
    run = await sdk.runs.create(remote.id, "gating", input={"log": ["run"]})
    assert (await sdk.runs.get(remote.id, run["run_id"]))["status"] == "pending"
    response = await http.post(f"/threads/{remote.id}/state", json={"values": {"log": ["no"]}, "as_node": "note"})
    assert (response.status_code, run["run_id"] in response.json()["detail"]) == (409, True)
    gate.touch()
    await update
    await sdk.runs.join(remote.id, run["run_id"])
    assert (await remote.history())[0]["values"] == {"log": [f"gate {gate}", "run", "noted"]}
