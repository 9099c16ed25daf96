"""Runs and the states they leave, over LangGraph's own client, with real agents in real guests."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from tests.host.http.test_flow_threads import unique
from tests.support.waiting import until

from agentvisor.host.http.agents import assistant_id

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


async def begun(sdk: LangGraphClient, gate: Path) -> tuple[str, str]:
    """A run that waits at the gate."""
    named = unique()
    run = await sdk.runs.create(named, "waiting", input={"gate": str(gate)}, if_not_exists="create")
    await until(gate.with_suffix(".started").exists)
    return named, run["run_id"]


async def test_a_run_answers_with_the_values_it_ends_with(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    values = await sdk.runs.wait(named, "waiting", input={"count": 1})
    assert values == {"count": 2, "log": ["worked", "waited"]}
    thread = await sdk.threads.get(named)
    assert (thread["status"], thread["values"]) == ("idle", values)
    assert thread["metadata"]["graph_id"] == "waiting"


async def test_a_run_has_the_shape_that_clients_know(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    body = {"assistant_id": assistant_id("plain"), "input": {"a": 1}, "metadata": {"by": "me"}}
    response = await http.post(f"/threads/{named}/runs", json=body)
    run = response.json()
    assert response.status_code == 200
    assert response.headers["content-location"] == f"/threads/{named}/runs/{run['run_id']}"
    assert (run["thread_id"], run["assistant_id"]) == (named, assistant_id("plain"))
    assert (run["metadata"], run["multitask_strategy"]) == ({"by": "me"}, "enqueue")
    assert run["kwargs"]["input"] == {"a": 1}
    assert await sdk.runs.join(named, run["run_id"]) == {"echo": {"a": 1}}
    ended = await sdk.runs.get(named, run["run_id"])
    assert ended["status"] == "success"
    assert [(one["attempt"], one["ending"]) for one in dict(ended)["attempts"]] == [(1, "completed")]
    assert [one["run_id"] for one in await sdk.runs.list(named)] == [run["run_id"]]
    assert await sdk.runs.list(named, status="error") == []
    assert [set(one) for one in await sdk.runs.list(named, select=["run_id", "status"])] == [{"run_id", "status"}]


async def test_a_failed_run_answers_with_its_error(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    answer = await sdk.runs.wait(named, "failing", input={"count": 0}, raise_error=False)
    assert answer == {"__error__": {"error": "ValueError", "message": "boom!"}}
    with pytest.raises(Exception, match="ValueError: boom!"):
        await sdk.runs.wait(named, "failing", input={"count": 0})
    thread = await sdk.threads.get(named)
    assert thread["status"] == "error"
    assert dict(thread)["error"] == {"error": "ValueError", "message": "boom!"}
    assert {one["status"] for one in await sdk.runs.list(named)} == {"error"}
    [task] = (await sdk.threads.get_state(named))["tasks"]
    assert task["error"] == "ValueError('boom!')"


async def test_a_question_is_shown_and_answered(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    asked = await sdk.runs.wait(named, "asking", input={"count": 0})
    assert isinstance(asked, dict)
    [question] = asked["__interrupt__"]
    assert question["value"] == {"question": "sure?"}
    state = await sdk.threads.get_state(named)
    assert (state["next"], state["interrupts"]) == (["ask"], [question])
    thread = await sdk.threads.get(named)
    assert thread["status"] == "interrupted"
    assert thread["interrupts"] == {state["tasks"][0]["id"]: [question]}
    assert {one["status"] for one in await sdk.runs.list(named)} == {"success"}

    values = await sdk.runs.wait(named, "asking", command={"resume": "yes"})
    assert values == {"count": 1, "log": ["worked", "answer yes"]}
    thread = await sdk.threads.get(named)
    assert (thread["status"], thread["interrupts"]) == ("idle", {})


async def test_every_state_of_the_past_can_be_read(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(named, "waiting", input={"count": 1})
    states = await sdk.threads.get_history(named)
    assert [one["next"] for one in states] == [[], ["wait"], ["work"], ["__start__"]]
    assert [one["values"].get("count") for one in states] == [2, 2, 1, None]
    assert [one["metadata"]["step"] for one in states] == [2, 1, 0, -1]
    assert states[0]["parent_checkpoint"] == states[1]["checkpoint"]
    assert states[-1]["parent_checkpoint"] is None
    assert states[0] == await sdk.threads.get_state(named)

    second = states[1]["checkpoint"]
    assert await sdk.threads.get_state(named, checkpoint_id=second["checkpoint_id"]) == states[1]
    assert await sdk.threads.get_state(named, checkpoint=second) == states[1]
    for before in (second["checkpoint_id"], second, {"configurable": second}):
        assert await sdk.threads.get_history(named, before=before) == states[2:]
    assert await sdk.threads.get_history(named, metadata={"step": 0}) == states[2:3]
    assert await sdk.threads.get_history(named, checkpoint={"checkpoint_ns": "no:1"}) == []
    assert await sdk.threads.get_history(named, checkpoint=second) == states[1:2]
    assert (await http.post(f"/threads/{named}/history", json={})).json() == states[:1]
    assert (await http.get(f"/threads/{named}/history")).json() == states
    assert (await http.get(f"/threads/{named}/history?limit=2")).json() == states[:2]


async def test_a_subgraph_has_states_of_its_own(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(named, "nested", input={"count": 1})
    [task] = (await sdk.threads.get_state(named))["tasks"]
    assert task["checkpoint"]["checkpoint_ns"].startswith("child:")
    assert (task["checkpoint"]["thread_id"], task["state"]) == (named, None)

    state = await sdk.threads.get_state(named, subgraphs=True)
    [task] = state["tasks"]
    child = task["state"]
    assert task["checkpoint"] is None
    assert (child["values"], child["next"]) == ({"count": 2, "log": ["worked"]}, ["ask"])
    assert child["interrupts"] == state["interrupts"] != []
    assert set(child["checkpoint"]["checkpoint_map"]) == {"", child["checkpoint"]["checkpoint_ns"]}

    assert await sdk.threads.get_state(named, checkpoint=child["checkpoint"]) == child | {
        "interrupts": child["interrupts"]
    }
    latest = {**child["checkpoint"], "checkpoint_id": None}
    assert await sdk.threads.get_state(named, checkpoint=latest) == child
    at = await sdk.threads.get_state(named, checkpoint_id=state["checkpoint"]["checkpoint_id"], subgraphs=True)
    assert at["tasks"][0]["state"] == child
    history = await sdk.threads.get_history(named, checkpoint=latest)
    assert [one["next"] for one in history] == [["ask"], ["work"], ["__start__"]]
    other = {"checkpoint": {**child["checkpoint"], "thread_id": "other"}}
    assert (await http.post(f"/threads/{named}/state/checkpoint", json=other)).status_code == 422


async def test_a_checkpoint_that_does_not_exist_is_an_empty_state(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    state = await sdk.threads.get_state(named, checkpoint_id="1f0000")
    assert (state["values"], state["next"], state["checkpoint"]["checkpoint_id"]) == ({}, [], "1f0000")
    state = await sdk.threads.get_state(named)
    assert (state["values"], state["checkpoint"]) == ({}, None)


async def test_a_plain_agents_state_is_what_it_returned(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    assert await sdk.runs.wait(named, "plain", input=[1]) == {"echo": [1]}
    assert (await sdk.threads.get_state(named))["values"] == {"echo": [1]}
    assert (await sdk.threads.get(named))["values"] == {"echo": [1]}
    assert await sdk.threads.get_history(named) == []


async def test_a_run_needs_its_thread_unless_it_may_create_it(sdk: LangGraphClient) -> None:
    named = unique()
    with pytest.raises(NotFoundError, match=f"thread {named} does not exist"):
        await sdk.runs.create(named, "plain")
    await sdk.runs.create(named, "plain", if_not_exists="create")
    assert (await sdk.threads.get(named))["metadata"]["graph_id"] == "plain"


async def test_a_refused_run_creates_nothing(sdk: LangGraphClient) -> None:
    for fields in ({"assistant_id": "nope"}, {"assistant_id": "plain", "langsmith_tracing": {"project_name": "p"}}):
        named = unique()
        with pytest.raises(UnprocessableEntityError):
            await sdk.runs.create(named, if_not_exists="create", **fields)
        with pytest.raises(NotFoundError):
            await sdk.threads.get(named)


async def test_a_second_run_waits_its_turn_or_is_rejected(sdk: LangGraphClient, gate: Path) -> None:
    named, first = await begun(sdk, gate)
    assert (await sdk.threads.get(named))["status"] == "busy"
    with pytest.raises(ConflictError, match=f"busy with run {first}"):
        await sdk.runs.create(named, "waiting", multitask_strategy="reject")
    second = await sdk.runs.create(named, "waiting", input={"count": 10})
    assert second["status"] == "pending"
    gate.touch()
    values = await sdk.runs.join(named, second["run_id"])
    assert values["log"] == ["worked", "waited", "worked", "waited"]
    assert values["count"] == 11
    assert [one["run_id"] for one in await sdk.runs.list(named)] == [second["run_id"], first]


async def test_a_cancelled_run_ends_and_what_it_did_stays(sdk: LangGraphClient, gate: Path) -> None:
    named, run_id = await begun(sdk, gate)
    await sdk.runs.cancel(named, run_id, wait=True)
    assert (await sdk.runs.get(named, run_id))["status"] == "interrupted"
    thread = await sdk.threads.get(named)
    assert (thread["status"], thread["values"]) == ("interrupted", {"count": 1, "log": ["worked"], "gate": str(gate)})
    with pytest.raises(NotFoundError, match="already interrupted"):
        await sdk.runs.cancel(named, run_id)
    gate.touch()
    assert await sdk.runs.wait(named, "waiting", input=None) == {
        "count": 1,
        "log": ["worked", "waited"],
        "gate": str(gate),
    }


async def test_a_cancel_that_is_not_waited_for_is_accepted(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named, run_id = await begun(sdk, gate)
    response = await http.post(f"/threads/{named}/runs/{run_id}/cancel")
    assert (response.status_code, response.content) == (202, b"")
    await sdk.runs.join(named, run_id)
    assert (await sdk.runs.get(named, run_id))["status"] == "interrupted"


async def test_a_run_that_nobody_knows_is_not_found(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    with pytest.raises(NotFoundError):
        await sdk.runs.get(named, "unknown")
    with pytest.raises(NotFoundError):
        await sdk.runs.cancel(named, "unknown")
    for missing in (named, "unknown"):
        joined = await http.get(f"/threads/{missing}/runs/unknown/join")
        assert (joined.status_code, joined.json()["__error__"]["error"]) == (200, "NotFound")
        streamed = await http.get(f"/threads/{missing}/runs/unknown/stream")
        assert (streamed.status_code, streamed.text.splitlines()[0]) == (200, "event: error")


async def test_a_run_of_a_thread_that_was_deleted_is_not_one_of_its_successor(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    named = (await sdk.threads.create())["thread_id"]
    run = await sdk.runs.create(named, "nothing", input=None)
    await sdk.runs.join(named, run["run_id"])
    await sdk.threads.delete(named)
    joining = f"/threads/{named}/runs/{run['run_id']}/join"
    assert "__error__" in (await http.get(joining)).json()
    await sdk.threads.create(thread_id=named)
    assert "__error__" in (await http.get(joining)).json()


async def test_a_run_without_a_thread_leaves_none_unless_it_is_to_be_kept(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    for method in ("/runs", "/runs/wait"):
        for keep in (False, True):
            body = {"assistant_id": "plain", "input": 1, **({"on_completion": "keep"} if keep else {})}
            response = await http.post(method, json=body)
            place = response.headers["content-location"]
            named = response.json()["thread_id"] if method == "/runs" else place.split("/")[2]
            assert place == (
                f"/runs/{response.json()['run_id']}"
                if method == "/runs"
                else f"/threads/{named}/runs/{place.split('/')[4]}"
            )
            if keep:
                assert await kept_output(sdk, named) == {"echo": 1}
            else:
                await until(lambda named=named: gone(http, named))


async def kept_output(sdk: LangGraphClient, named: str) -> Any:
    [run] = await sdk.runs.list(named)
    return await sdk.runs.join(named, run["run_id"])


async def gone(http: httpx.AsyncClient, named: str) -> bool:
    return (await http.get(f"/threads/{named}")).status_code == 404


async def test_a_client_that_waits_is_kept_alive_and_leaving_cancels_only_if_asked(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    for mode, status in (("continue", "success"), ("cancel", "interrupted")):
        here = gate.with_name(f"gate-{mode}")
        named = unique()
        body = {
            "assistant_id": "waiting",
            "input": {"gate": str(here)},
            "if_not_exists": "create",
            "on_disconnect": mode,
        }
        async with http.stream("POST", f"/threads/{named}/runs/wait", json=body) as response:
            assert response.headers["location"].endswith("/join")
            await until(here.with_suffix(".started").exists)
        [run] = await sdk.runs.list(named)
        if mode == "continue":
            await asyncio.sleep(0.3)  # nothing to wait for: that nothing happens is what is shown
            assert (await sdk.runs.get(named, run["run_id"]))["status"] == "running"
            here.touch()
        await sdk.runs.join(named, run["run_id"])
        assert (await sdk.runs.get(named, run["run_id"]))["status"] == status


async def test_a_checkpoint_that_is_not_there_starts_no_run(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = unique()
    await sdk.runs.wait(named, "waiting", input={"count": 1}, if_not_exists="create")
    body = {"assistant_id": "waiting", "input": {"count": 5}}
    for field in ({"checkpoint_id": "unknown"}, {"config": {"configurable": {"checkpoint_id": "unknown"}}}):
        response = await http.post(f"/threads/{named}/runs/wait", json=body | field)
        assert response.status_code == 404
        assert "'unknown'" in response.json()["detail"]
        assert (await http.post("/runs/wait", json=body | field)).status_code == 404
    assert len(await sdk.runs.list(named)) == 1
    fresh = await http.post(f"/threads/{unique()}/runs", json={**body, "checkpoint_id": "c", "if_not_exists": "create"})
    assert fresh.status_code == 404


async def test_a_checkpoint_in_the_config_is_gone_on_from(sdk: LangGraphClient) -> None:
    named = unique()
    await sdk.runs.wait(named, "waiting", input={"count": 1}, if_not_exists="create")
    first = (await sdk.threads.get_history(named))[-1]["checkpoint"]["checkpoint_id"]
    await sdk.runs.wait(named, "waiting", input={"count": 7}, config={"configurable": {"checkpoint_id": first}})
    parents = [one["parent_checkpoint"] for one in await sdk.threads.get_history(named)]
    assert [one["checkpoint_id"] for one in parents if one].count(first) == 2


async def test_a_run_is_answered_for_with_what_it_left_whatever_came_after_it(sdk: LangGraphClient) -> None:
    """Runs that queue behind it may have gone on before who waits for it looks at the thread."""
    thread = (await sdk.threads.create())["thread_id"]
    asked = await sdk.runs.create(thread, "asking", input={"count": 0})
    await sdk.runs.join(thread, asked["run_id"])
    later = await sdk.runs.wait(thread, "failing", input={"count": 40}, raise_error=False)
    assert "boom!" in str(later)
    again = await sdk.runs.wait(thread, "asking", input={"count": 70})

    first = await sdk.runs.join(thread, asked["run_id"])
    assert (first["count"], len(first["log"])) == (1, 1)
    assert [one["value"] for one in first["__interrupt__"]] == [{"question": "sure?"}]
    assert again["count"] == 71
