"""Assistants over HTTP, as LangGraph's client asks for them: versions, search, and what a run has of one."""

import asyncio
import secrets
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from agentvisor.host.assistants import Assistants
from agentvisor.host.http.agents import assistant_id

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def new_id() -> str:
    return str(uuid4())


def without_agent(monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    """As on a host that was started with this agent and is started without it now."""
    check = Assistants.check_agent

    def lacks(self: Assistants, graph_id: str) -> None:
        check(self, "" if graph_id == agent else graph_id)

    monkeypatch.setattr(Assistants, "check_agent", lacks)


async def refused(call: Any, status: int) -> str:
    with pytest.raises(httpx.HTTPStatusError) as caught:
        await call
    assert caught.value.response.status_code == status
    return str(caught.value.response.json()["detail"])


async def test_an_assistant_is_made_of_an_agent_and_shown_as_it_was_given(sdk: LangGraphClient) -> None:
    given = new_id()
    config = {"configurable": {"who": "me"}, "tags": ["t"], "recursion_limit": 7}
    made = await sdk.assistants.create(
        "plain", config, metadata={"m": 1}, assistant_id=given, name="Mine", description="d"
    )
    assert made == await sdk.assistants.get(given)
    assert {**made, "created_at": None, "updated_at": None} == {
        "assistant_id": given,
        "graph_id": "plain",
        "name": "Mine",
        "description": "d",
        "config": config,
        "context": {"who": "me"},
        "metadata": {"m": 1},
        "version": 1,
        "created_at": None,
        "updated_at": None,
    }
    unnamed = await sdk.assistants.create("plain", context={"who": "c"})
    assert unnamed["name"] == "Untitled"
    assert unnamed["config"] == {"configurable": {"who": "c"}}


async def test_an_id_that_is_taken_is_409_or_left_as_it_is(sdk: LangGraphClient) -> None:
    given = new_id()
    made = await sdk.assistants.create("plain", assistant_id=given, name="first")
    assert given in await refused(sdk.assistants.create("plain", assistant_id=given), 409)
    again = await sdk.assistants.create("talking", assistant_id=given, if_exists="do_nothing", name="second")
    assert again == made
    systems = await sdk.assistants.create("plain", assistant_id=assistant_id("plain"), if_exists="do_nothing")
    assert systems["metadata"] == {"created_by": "system"}


async def test_each_patch_makes_a_version_and_an_earlier_one_can_be_brought_back_whole(sdk: LangGraphClient) -> None:
    one = await sdk.assistants.create("plain", context={"who": "1"}, metadata={"m": 1}, name="N1", description="D1")
    given = one["assistant_id"]
    two = await sdk.assistants.update(given, context={"who": "2"}, metadata={"k": 2}, graph_id="talking", name="N2")
    assert (two["version"], two["graph_id"], two["context"]) == (2, "talking", {"who": "2"})
    assert two["metadata"] == {"m": 1, "k": 2}
    assert two["description"] == "D1"
    three = await sdk.assistants.update(given, config={"configurable": {"style": "x"}, "tags": ["t"]})
    assert (three["config"], three["context"]) == (
        {"configurable": {"style": "x"}, "tags": ["t"]},
        {"style": "x"},
    )
    back = await sdk.assistants.set_latest(given, 1)
    assert {**back, "updated_at": None} == {**one, "updated_at": None}
    assert await sdk.assistants.get(given) == back
    four = await sdk.assistants.update(given, description="D4")
    assert (four["version"], four["context"], four["name"]) == (4, {"who": "1"}, "N1")
    versions = await sdk.assistants.get_versions(given)
    assert [(each["version"], each["graph_id"], each["name"], each["description"]) for each in versions] == [
        (4, "plain", "N1", "D4"),
        (3, "talking", "N2", "D1"),
        (2, "talking", "N2", "D1"),
        (1, "plain", "N1", "D1"),
    ]
    assert [each["version"] for each in await sdk.assistants.get_versions(given, limit=2, offset=1)] == [3, 2]
    assert [each["version"] for each in await sdk.assistants.get_versions(given, metadata={"k": 2})] == [3, 2]
    assert "no version 9" in await refused(sdk.assistants.set_latest(given, 9), 404)


async def test_an_assistant_is_changed_however_often_and_its_oldest_versions_make_room(sdk: LangGraphClient) -> None:
    given = (await sdk.assistants.create("plain"))["assistant_id"]
    for number in range(10):
        changed = await sdk.assistants.update(given, config={"tags": [f"{number}" + secrets.token_hex(120_000)]})
    assert changed["version"] == 11
    kept = [one["version"] for one in await sdk.assistants.get_versions(given, limit=100)]
    assert kept[:4] == [11, 10, 9, 8]
    assert 1 not in kept
    assert (await sdk.assistants.set_latest(given, 9))["config"]["tags"][0].startswith("7")
    await refused(sdk.assistants.set_latest(given, 1), 404)


async def test_patches_at_the_same_time_are_versions_each_and_none_is_lost(sdk: LangGraphClient) -> None:
    given = (await sdk.assistants.create("plain"))["assistant_id"]
    await asyncio.gather(*(sdk.assistants.update(given, metadata={f"k{one}": one}) for one in range(6)))
    current = await sdk.assistants.get(given)
    assert current["version"] == 7
    assert current["metadata"] == {f"k{one}": one for one in range(6)}
    versions = await sdk.assistants.get_versions(given, limit=100)
    assert [len(each["metadata"]) for each in versions] == [6, 5, 4, 3, 2, 1, 0]  # type: ignore[arg-type]


async def test_a_search_filters_sorts_and_pages(sdk: LangGraphClient) -> None:
    mark = new_id()
    for name, agent in (("Alpha Beta", "plain"), ("gamma", "talking"), ("beta", "plain")):
        await sdk.assistants.create(agent, name=name, metadata={"mark": mark, "in": {"deep": name, "x": 1}})

    async def names(**asked: Any) -> list[str]:
        return [one["name"] for one in await sdk.assistants.search(metadata={"mark": mark}, **asked)]

    assert await names() == ["beta", "gamma", "Alpha Beta"]
    assert await names(sort_by="name", sort_order="asc") == ["Alpha Beta", "beta", "gamma"]
    assert await names(sort_by="created_at", sort_order="asc") == ["Alpha Beta", "gamma", "beta"]
    assert await names(name="BETA", sort_by="name") == ["beta", "Alpha Beta"]
    assert await names(graph_id="talking") == ["gamma"]
    found = await sdk.assistants.search(metadata={"mark": mark, "in": {"deep": "gamma"}}, select=["name", "version"])
    assert found == [{"name": "gamma", "version": 1}]
    page = await sdk.assistants.search(metadata={"mark": mark}, limit=2, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (2, "2")
    rest = await sdk.assistants.search(metadata={"mark": mark}, limit=2, offset=2, response_format="object")
    assert (len(rest["assistants"]), rest["next"]) == (1, None)
    assert await sdk.assistants.count(metadata={"mark": mark}) == 3
    assert await sdk.assistants.count(metadata={"mark": mark}, name="beta", graph_id="plain") == 2
    assert await sdk.assistants.search(metadata={"mark": 1, "none": None}) == []
    assert "'nope'" in await refused(sdk.assistants.search(graph_id="nope"), 404)


async def test_an_agents_own_assistant_can_be_changed_and_is_reset_by_a_delete(sdk: LangGraphClient) -> None:
    given = assistant_id("nothing")
    assert "configuration" in await refused(sdk.assistants.delete(given), 409)
    changed = await sdk.assistants.update(given, name="other", metadata={"q": 1})
    assert (changed["version"], changed["metadata"]) == (2, {"created_by": "system", "q": 1})
    assert [one["name"] for one in await sdk.assistants.get_versions(given)] == ["other", "nothing"]
    mine = await sdk.assistants.search(graph_id="nothing", metadata={"created_by": "system"})
    assert [one["name"] for one in mine] == ["other"]
    await sdk.assistants.delete(given)
    as_configured = await sdk.assistants.get(given)
    assert (as_configured["name"], as_configured["version"]) == ("nothing", 1)
    assert [one["name"] for one in await sdk.assistants.get_versions(given)] == ["nothing"]


async def test_what_is_wrong_is_refused_by_name(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    given = (await sdk.assistants.create("plain"))["assistant_id"]
    unknown = new_id()
    for method, path, body, status, says in (
        ("POST", "", {}, 422, "graph_id"),
        ("POST", "", {"graph_id": "nope"}, 404, "nope"),
        ("POST", "", {"graph_id": "plain", "assistant_id": "no-uuid"}, 422, "assistant_id"),
        ("POST", "", {"graph_id": "plain", "what": 1}, 422, "what"),
        ("POST", "", {"graph_id": "plain", "context": {"a": 1}, "config": {"configurable": {"b": 1}}}, 422, "context"),
        ("POST", "", {"graph_id": "plain", "config": {"tags": "t"}}, 422, "config.tags"),
        ("POST", "", {"graph_id": "plain", "config": {"configurable": {"thread_id": "x"}}}, 422, "thread_id"),
        ("POST", "", {"graph_id": "plain", "config": {"configurable": {"checkpoint_id": "x"}}}, 422, "checkpoint_id"),
        ("PATCH", f"/{given}", {"config": {"configurable": {"checkpoint_ns": "x"}}}, 422, "checkpoint_ns"),
        ("POST", "", {"graph_id": "plain", "context": {"text": "x" * 300_000}}, 413, "storage.max_record"),
        ("PATCH", f"/{given}", {"graph_id": "nope"}, 404, "nope"),
        ("PATCH", f"/{given}", {"what": 1}, 422, "what"),
        ("PATCH", f"/{unknown}", {"name": "x"}, 404, unknown),
        ("GET", f"/{unknown}", None, 404, unknown),
        ("GET", "/no-uuid", None, 404, "no-uuid"),
        ("DELETE", f"/{unknown}", None, 404, unknown),
        ("POST", f"/{unknown}/versions", {}, 404, unknown),
        ("POST", f"/{unknown}/latest", {"version": 1}, 404, unknown),
        ("POST", f"/{given}/latest", {}, 422, "version"),
        ("POST", f"/{given}/versions", {"limit": 0}, 422, "limit"),
        ("POST", "/search", {"sort_by": "foo"}, 422, "sort_by"),
        ("POST", "/search", {"select": ["foo"]}, 422, "select"),
        ("POST", "/count", {"limit": 1}, 422, "limit"),
    ):
        answer = await http.request(method, f"/assistants{path}", json=body)
        assert (answer.status_code, says in answer.json()["detail"]) == (status, True), (path, body, answer.text)
    assert (await sdk.assistants.get(given))["version"] == 1


# --- runs ------------------------------------------------------------------------------------------------------------


async def run_of(sdk: LangGraphClient, assistant: str, **fields: Any) -> dict[str, Any]:
    """The run, once it has ended."""
    thread = (await sdk.threads.create())["thread_id"]
    run = await sdk.runs.create(thread, assistant, input={"text": "hi"}, **fields)
    await sdk.runs.join(thread, run["run_id"])
    return dict(await sdk.runs.get(thread, run["run_id"]))


async def test_a_run_has_what_its_assistant_says_beneath_what_it_says_itself(sdk: LangGraphClient) -> None:
    config = {"configurable": {"who": "assistant", "style": "s"}, "tags": ["t"], "recursion_limit": 7}
    made = await sdk.assistants.create("configured", config, metadata={"m": 1, "both": "assistant"})
    mine = made["assistant_id"]
    run = await run_of(sdk, mine, config={"configurable": {"who": "run"}, "tags": ["u"]}, metadata={"both": "run"})
    assert run["assistant_id"] == mine
    assert run["metadata"] == {"m": 1, "both": "run"}
    merged = {"configurable": {"who": "run", "style": "s"}, "tags": ["u"], "recursion_limit": 7}
    assert run["kwargs"]["config"] == merged
    assert run["kwargs"]["assistant_version"] == 1
    both = {"who": "run", "style": "s"}
    state = await sdk.threads.get_state(run["thread_id"])
    assert state["values"]["seen"] == {"context": both, "given": both, "assistant": mine}  # type: ignore[call-overload]
    thread = await sdk.threads.get(run["thread_id"])
    assert thread["metadata"]["assistant_id"] == mine  # type: ignore[index, call-overload]
    said = await run_of(sdk, mine, context={"who": "context"})
    assert said["kwargs"]["context"] == {"who": "context", "style": "s"}
    assert said["kwargs"]["config"]["configurable"] == {"who": "context", "style": "s"}


async def test_a_run_that_was_accepted_keeps_the_version_that_there_was(sdk: LangGraphClient) -> None:
    mine = (await sdk.assistants.create("asking", context={"who": "1"}, metadata={"v": 1}))["assistant_id"]
    thread = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(thread, mine, input={"topic": "tea"})
    assert (await sdk.threads.get(thread))["status"] == "interrupted"
    await sdk.assistants.update(mine, context={"who": "2"}, metadata={"v": 2}, graph_id="plain")
    async with httpx.AsyncClient(base_url=str(sdk.http.client.base_url)) as http:
        [waiting] = (await http.get(f"/threads/{thread}/interrupts")).json()
        answered = await http.post(f"/threads/{thread}/interrupts/{waiting['id']}", json={"answer": "yes"})
        assert answered.status_code == 200, answered.text
        answer = answered.json()
    await sdk.runs.join(thread, answer["run_id"])
    run = await sdk.runs.get(thread, answer["run_id"])
    assert run["status"] == "success"
    assert run["assistant_id"] == mine
    assert run["kwargs"]["context"] == {"who": "1"}  # type: ignore[typeddict-item]
    later = await run_of(sdk, mine)
    assert (later["kwargs"]["context"], later["kwargs"]["assistant_version"]) == ({"who": "2"}, 2)


async def test_a_run_of_no_assistant_is_404_by_id_and_422_by_name(sdk: LangGraphClient) -> None:
    thread = (await sdk.threads.create())["thread_id"]
    mine = (await sdk.assistants.create("plain", name="a name that is no agent's"))["assistant_id"]
    assert mine  # its name does not name it in a run
    await refused(sdk.runs.create(thread, new_id(), input={}), 404)
    await refused(sdk.runs.create(thread, "a name that is no agent's", input={}), 422)


async def test_with_its_threads_an_assistant_is_gone_with_them_and_without_they_stay(sdk: LangGraphClient) -> None:
    mine = (await sdk.assistants.create("plain"))["assistant_id"]
    first, second = [(await run_of(sdk, mine))["thread_id"] for _ in range(2)]
    other = (await run_of(sdk, "plain"))["thread_id"]
    await until_listed(sdk, mine, 2)
    await sdk.assistants.delete(mine, delete_threads=True)
    for gone in (first, second):
        await refused(sdk.threads.get(gone), 404)
    await refused(sdk.assistants.get(mine), 404)
    assert (await sdk.threads.get(other))["thread_id"] == other
    kept = (await sdk.assistants.create("plain"))["assistant_id"]
    thread = (await run_of(sdk, kept))["thread_id"]
    await sdk.assistants.delete(kept)
    assert (await sdk.threads.get(thread))["metadata"]["assistant_id"] == kept  # type: ignore[index, call-overload]
    assert [one["assistant_id"] for one in await sdk.runs.list(thread)] == [kept]


async def until_listed(sdk: LangGraphClient, assistant: str, number: int) -> None:
    async with asyncio.timeout(10):
        while len(await sdk.threads.search(metadata={"assistant_id": assistant})) < number:
            await asyncio.sleep(0.02)


async def test_an_assistant_whose_agent_was_taken_out_says_so_when_it_is_looked_into(
    sdk: LangGraphClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = (await sdk.assistants.create("waiting"))["assistant_id"]
    without_agent(monkeypatch, "waiting")
    for look in (sdk.assistants.get_graph, sdk.assistants.get_schemas, sdk.assistants.get_subgraphs):
        assert f"assistant {mine}: there is no agent" in await refused(look(mine), 422)
    assert (await sdk.assistants.get(mine))["graph_id"] == "waiting"
