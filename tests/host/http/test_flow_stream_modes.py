"""The less common stream modes, as LangGraph's server tells them."""

from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from tests.host.http.test_flow_stream import parts, told
from tests.host.http.test_flow_threads import unique

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def streamed(sdk: LangGraphClient, agent: str, asked: Any, modes: Any, **options: Any) -> list[tuple[str, Any]]:
    stream = sdk.runs.stream(unique(), agent, input=asked, stream_mode=modes, if_not_exists="create", **options)
    return told(await parts(stream))


async def test_events_are_those_of_the_graph_and_of_all_that_it_calls(sdk: LangGraphClient) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    metadata, *found = await streamed(sdk, "talking", asked, "events")
    assert {name for name, _ in found} == {"events"}
    kinds = [(data["event"], data["name"]) for _, data in found]
    assert kinds[0] == ("on_chain_start", "talking")
    assert kinds[-1] == ("on_chain_end", "talking")
    assert ("on_chain_start", "model") in kinds
    tokens = [data["data"]["chunk"]["content"] for _, data in found if data["event"] == "on_chat_model_stream"]
    assert "".join(tokens) == "hello big world"
    run_id = metadata[1]["run_id"]
    assert (found[0][1]["run_id"], found[0][1]["parent_ids"]) == (run_id, [])
    assert all(data["parent_ids"][0] == run_id for _, data in found[1:-1])
    assert found[-1][1]["data"]["output"]["messages"][-1]["content"] == "hello big world"


async def test_other_modes_beside_events_tell_what_they_tell_alone(sdk: LangGraphClient) -> None:
    asked, modes = {"count": 1}, ["values", "updates", "custom"]
    alone = await streamed(sdk, "waiting", asked, modes)
    beside = [one for one in await streamed(sdk, "waiting", asked, ["events", *modes]) if one[0] != "events"]
    assert beside[1:] == alone[1:]


async def test_events_do_not_keep_a_graph_from_stopping_at_its_question(sdk: LangGraphClient) -> None:
    named = unique()
    stream = sdk.runs.stream(
        named, "asking", input={"count": 0}, stream_mode=["events", "updates"], if_not_exists="create"
    )
    found = told(await parts(stream))
    [*_, last] = [data for name, data in found if name == "updates"]
    assert last["__interrupt__"][0]["value"] == {"question": "sure?"}
    state = await sdk.threads.get_state(named)
    assert [task["name"] for task in state["tasks"]] == ["ask"]
    values = await sdk.runs.wait(named, "asking", command={"resume": "yes"})
    assert values == {"count": 1, "log": ["worked", "answer yes"]}


async def test_debug_says_of_each_checkpoint_where_it_is_in_the_form_that_clients_send(sdk: LangGraphClient) -> None:
    found = await streamed(sdk, "nested", {"count": 0}, "debug", stream_subgraphs=True)
    checkpoints = [(name, data["payload"]) for name, data in found if data.get("type") == "checkpoint"]
    [first, *_] = [payload for name, payload in checkpoints if name == "debug"]
    place = first["config"]["configurable"]
    assert first["checkpoint"] == {name: place[name] for name in ("checkpoint_id", "thread_id", "checkpoint_ns")}
    assert first["parent_checkpoint"] is None
    [inner, *_] = [payload for name, payload in checkpoints if name.startswith("debug|child:")]
    assert inner["checkpoint"]["checkpoint_ns"].startswith("child:")
    # A task that is a graph of its own says where that is.
    [task] = [one for _, payload in checkpoints for one in payload["tasks"] if one["name"] == "child"]
    assert task["checkpoint"]["checkpoint_ns"].startswith("child:")
    assert "state" not in task


async def test_a_filter_names_the_mode_and_lets_its_subgraphs_through(sdk: LangGraphClient) -> None:
    created: list[Any] = []
    named = unique()
    stream = sdk.runs.stream(
        named,
        "nested",
        input={"count": 0},
        stream_mode=["updates", "values"],
        stream_subgraphs=True,
        if_not_exists="create",
        on_run_created=created.append,
    )
    whole = told(await parts(stream))
    filtered = sdk.runs.join_stream(named, created[0]["run_id"], stream_mode="updates", last_event_id="-1")
    names = [name for name, _ in whole]
    assert any(name.startswith("updates|child:") for name in names)
    assert told(await parts(filtered)) == [one for one in whole if not one[0].startswith("values")]


@pytest.mark.parametrize("mode", ["tools", "lifecycle"])
async def test_channels_of_the_event_protocol_are_no_modes_of_a_run(http: httpx.AsyncClient, mode: str) -> None:
    body = {"assistant_id": "waiting", "stream_mode": ["values", mode], "if_not_exists": "create"}
    refused = await http.post(f"/threads/{unique()}/runs/stream", json=body)
    assert refused.status_code == 422
    assert mode in refused.json()["detail"]
    assert "event protocol" in refused.json()["detail"]
