"""Threads that begin with a history: all of its super-steps, or no thread (S29)."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateUpdate
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError
from tests.host.http.state import agents
from tests.host.http.state.conftest import InProcess, Remote, normal

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def step(values: Any, as_node: str, command: Any = None) -> dict[str, Any]:
    return {"updates": [{"values": values, "as_node": as_node, "command": command}]}


async def test_a_thread_begins_with_the_super_steps_that_it_is_given(sdk: LangGraphClient) -> None:
    steps = [step({"count": 1}, "__input__"), step({"count": 2, "log": ["w"]}, "work"), step({"log": ["a"]}, "ask")]
    thread = await sdk.threads.create(graph_id="line", supersteps=steps, metadata={"owner": "ann"})
    assert (thread["status"], thread["values"]) == ("interrupted", {"count": 2, "log": ["w", "a"]})
    assert thread["metadata"] == {"owner": "ann", "graph_id": "line"}
    remote, oracle = Remote(sdk, "line", thread["thread_id"]), InProcess(agents.line, "t")
    oracle.graph.checkpointer = InMemorySaver()
    await oracle.graph.abulk_update_state(
        {"configurable": {"thread_id": "t"}},
        [[StateUpdate(one["updates"][0]["values"], one["updates"][0]["as_node"])] for one in steps],
    )
    assert normal(await remote.history()) == normal(await oracle.history())
    await remote.run(None)
    assert (await remote.history())[0]["values"]["log"] == ["w", "a", "last"]


async def test_a_super_step_can_be_a_command(sdk: LangGraphClient) -> None:
    steps = [step(None, "work", {"update": {"count": 4}, "goto": "last"})]
    thread = await sdk.threads.create(graph_id="line", supersteps=steps)
    assert thread["values"] == {"count": 4}
    assert "last" in (await sdk.threads.get_state(thread["thread_id"]))["next"]


async def test_a_history_that_is_refused_leaves_no_thread(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    bad = [step({"count": 1}, "__input__"), step({"count": 2}, "nope")]
    for status, says, body in (
        (400, "nope does not exist", {"supersteps": bad, "metadata": {"graph_id": "line"}}),
        (400, "graph_id", {"supersteps": bad}),
        (422, "nobody", {"supersteps": bad, "metadata": {"graph_id": "nobody"}}),
        (422, "no LangGraph graph", {"supersteps": bad, "metadata": {"graph_id": "plain"}}),
        (424, "no_such_module", {"supersteps": bad, "metadata": {"graph_id": "broken"}}),
        (422, "as_node", {"supersteps": [{"updates": [{"values": {}}]}], "metadata": {"graph_id": "line"}}),
        (422, "updates", {"supersteps": [{"updates": []}], "metadata": {"graph_id": "line"}}),
    ):
        thread_id = str(uuid4())
        response = await http.post("/threads", json={"thread_id": thread_id, **body})
        assert (response.status_code, says in response.json()["detail"]) == (status, True), response.text
        assert (await http.get(f"/threads/{thread_id}")).status_code == 404
        assert (await sdk.threads.create(thread_id=thread_id))["values"] is None


async def test_a_thread_that_exists_keeps_its_own_history(sdk: LangGraphClient) -> None:
    steps, thread_id = [step({"count": 1}, "__input__")], str(uuid4())
    await sdk.threads.create(thread_id=thread_id, graph_id="line", supersteps=steps)
    before = await sdk.threads.get_history(thread_id)
    with pytest.raises(ConflictError, match="exists already"):
        await sdk.threads.create(thread_id=thread_id, graph_id="line", supersteps=steps)
    await sdk.threads.create(thread_id=thread_id, graph_id="line", supersteps=steps, if_exists="do_nothing")
    assert await sdk.threads.get_history(thread_id) == before
