"""LangGraph's RemoteGraph: an agent of a host used as if it were a graph of the caller's own process."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command, interrupt
from langgraph_sdk.client import LangGraphClient
from tests.host.http.agents import State
from tests.support.waiting import until

from agentvisor.host.app import Host

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


def thread() -> RunnableConfig:
    return {"configurable": {"thread_id": str(uuid4())}}


def id_of(config: RunnableConfig) -> str:
    return config["configurable"]["thread_id"]


class Remote:
    """Agents of a host."""

    def __init__(self, host: Host, client: LangGraphClient) -> None:
        self._url, self._client = host.url, client

    def __getitem__(self, agent: str) -> RemoteGraph:
        return RemoteGraph(agent, url=self._url, client=self._client)

    def within(self, agent: str) -> CompiledStateGraph[State, Any, State, State]:
        """A local graph with the agent as a node between two of its own."""
        builder = StateGraph(State)
        builder.add_node("before", lambda _: {"log": ["before"]})
        builder.add_node("remote", self[agent])
        builder.add_node("after", lambda _: {"log": ["after"]})
        builder.add_edge(START, "before")
        builder.add_edge("before", "remote")
        builder.add_edge("remote", "after")
        return builder.compile(checkpointer=InMemorySaver())


@pytest_asyncio.fixture(loop_scope="session")
async def remote(host: Host, sdk: LangGraphClient) -> AsyncGenerator[Remote]:
    yield Remote(host, sdk)


async def test_it_is_invoked_with_and_without_a_thread(remote: Remote, sdk: LangGraphClient) -> None:
    done = {"count": 2, "log": ["worked", "waited"]}
    assert await remote["waiting"].ainvoke({"count": 1}) == done
    config = thread()
    assert await remote["waiting"].ainvoke({"count": 1}, config) == done
    assert (await sdk.threads.get(id_of(config)))["values"] == done
    assert await asyncio.to_thread(remote["waiting"].invoke, {"count": 1}) == done


async def test_its_failure_is_an_exception_here(remote: Remote) -> None:
    with pytest.raises(RemoteException, match="boom!"):
        await remote["failing"].ainvoke({"count": 1})


async def test_it_streams_several_modes_and_subgraphs(remote: Remote) -> None:
    modes: Any = ["values", "updates", "custom"]
    parts = [(one.event, one.data) async for one in remote["waiting"].astream({"count": 1}, stream_mode=modes)]
    assert ("custom", {"working": 1}) in parts
    assert ("updates", {"wait": {"log": ["waited"]}}) in parts
    assert parts[-1] == ("values", {"count": 2, "log": ["worked", "waited"]})
    seen = [
        part async for part in remote["nested"].astream({"count": 1}, thread(), stream_mode="updates", subgraphs=True)
    ]
    inner = [data for namespace, data in seen if namespace and namespace[0].startswith("child:")]
    assert inner[0] == {"work": {"count": 2, "log": ["worked"]}}


async def test_tokens_come_as_messages_with_what_they_belong_to(remote: Remote) -> None:
    said = {"messages": [{"role": "user", "content": "hi"}]}
    parts = [part async for part in remote["talking"].astream(said, stream_mode="messages")]
    assert "".join(message["content"] for message, _ in parts) == "hello big world"
    assert {about["langgraph_node"] for _, about in parts} == {"model"}


async def test_its_state_and_history_are_read(remote: Remote) -> None:
    config, graph = thread(), remote["asking"]
    await graph.ainvoke({"count": 1}, config)
    state = await graph.aget_state(config)
    assert (state.values, state.next) == ({"count": 2, "log": ["worked"]}, ("ask",))
    assert [one.value for one in state.interrupts] == [{"question": "sure?"}]
    history = [one async for one in graph.aget_state_history(config)]
    assert [one.next for one in history] == [("ask",), ("work",), ("__start__",)]
    past = await graph.aget_state(history[1].config)
    assert (past.next, past.values["count"]) == (("work",), 1)
    before = [one async for one in graph.aget_state_history(config, before=history[0].config, limit=1)]
    assert [one.next for one in before] == [("work",)]


async def test_its_subgraphs_state_is_read(remote: Remote) -> None:
    config, graph = thread(), remote["nested"]
    await graph.ainvoke({"count": 1}, config)
    state = await graph.aget_state(config, subgraphs=True)
    inner: Any = state.tasks[0].state
    assert (state.next, inner.next) == (("child",), ("ask",))
    assert inner.values["count"] == 2


async def test_its_question_is_answered_with_a_command(remote: Remote) -> None:
    config, graph = thread(), remote["asking"]
    asked = await graph.ainvoke({"count": 1}, config)
    [question] = asked["__interrupt__"]
    assert question["value"] == {"question": "sure?"}
    answered = await graph.ainvoke(Command(resume="yes"), config)
    assert answered["log"] == ["worked", "answer yes"]
    assert (await graph.aget_state(config)).next == ()


async def test_its_question_is_answered_by_its_id(remote: Remote) -> None:
    config, graph = thread(), remote["asking"]
    [question] = (await graph.ainvoke({"count": 1}, config))["__interrupt__"]
    answered = await graph.ainvoke(Command(resume={question["id"]: "yes"}), config)
    assert answered["log"] == ["worked", "answer yes"]


async def test_a_command_moves_it_and_updates_it(remote: Remote) -> None:
    config, graph = thread(), remote["asking"]
    await graph.ainvoke({"count": 1}, config)
    moved = await graph.ainvoke(Command(goto="work", update={"count": 10}), config)
    assert moved["count"] == 11


async def test_it_stops_before_a_node_and_goes_on(remote: Remote) -> None:
    config, graph = thread(), remote["waiting"]
    stopped = await graph.ainvoke({"count": 1}, config, interrupt_before=["wait"])
    assert stopped["log"] == ["worked"]
    assert (await graph.aget_state(config)).next == ("wait",)
    assert (await graph.ainvoke(None, config))["log"] == ["worked", "waited"]


async def test_its_state_is_updated(remote: Remote) -> None:
    config, graph = thread(), remote["asking"]
    await graph.ainvoke({"count": 1}, config)
    updated = await graph.aupdate_state(config, {"log": ["told"]}, as_node="work")
    state = await graph.aget_state(updated)
    assert (state.values["log"], state.next) == (["worked", "told"], ("ask",))


async def test_its_graph_is_drawn(remote: Remote) -> None:
    drawn = await remote["asking"].aget_graph()
    assert {"work", "ask"} <= drawn.nodes.keys()
    assert ("work", "ask") in {(edge.source, edge.target) for edge in drawn.edges}


async def test_it_is_a_node_of_a_local_graph(remote: Remote) -> None:
    graph = remote.within("waiting")
    done = await graph.ainvoke({"count": 1}, thread())
    assert done["count"] == 2
    assert done["log"][-1] == "after"
    assert {"worked", "waited"} <= set(done["log"])


async def test_what_it_streams_goes_through_the_local_graph(remote: Remote) -> None:
    graph = remote.within("waiting")
    parts = [part async for part in graph.astream({"count": 1}, thread(), stream_mode="updates", subgraphs=True)]
    inner = [data for namespace, data in parts if namespace and namespace[0].startswith("remote:")]
    assert {"wait": {"log": ["waited"]}} in inner


async def test_its_question_stops_the_local_graph(remote: Remote, sdk: LangGraphClient) -> None:
    graph, config = remote.within("asking"), thread()
    stopped = await graph.ainvoke({"count": 1}, config)
    [question] = stopped["__interrupt__"]
    assert question.value == {"question": "sure?"}
    assert (await graph.aget_state(config)).next == ("remote",)
    [[asked]] = (await sdk.threads.get(id_of(config)))["interrupts"].values()
    assert asked["id"] == question.id


@pytest.mark.xfail(reason="langgraph#4879: a node that is a RemoteGraph is called with its input again", strict=True)
async def test_an_answer_to_the_local_graph_reaches_it(remote: Remote) -> None:
    graph, config = remote.within("asking"), thread()
    await graph.ainvoke({"count": 1}, config)
    done = await graph.ainvoke(Command(resume="yes"), config)
    assert "answer yes" in done["log"]


async def test_a_node_that_hands_the_answer_on_resumes_it(remote: Remote, sdk: LangGraphClient) -> None:
    """What works where #4879 does not: the node asks the caller with the agent's question, and answers the agent."""

    agent, config = remote["asking"], thread()
    inner = thread()
    await sdk.threads.create(thread_id=id_of(inner))

    async def ask(state: State) -> State:
        if (await sdk.threads.get(id_of(inner)))["status"] != "interrupted":
            await agent.ainvoke({"count": state.get("count", 0)}, inner)
        [question] = (await agent.aget_state(inner)).interrupts
        answered = await agent.ainvoke(Command(resume=interrupt(question.value)), inner)
        return {"log": answered["log"]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    stopped = await graph.ainvoke({"count": 1}, config)
    assert [one.value for one in stopped["__interrupt__"]] == [{"question": "sure?"}]
    done = await graph.ainvoke(Command(resume="yes"), config)
    assert done["log"] == ["worked", "answer yes"]
    assert [one["status"] for one in await sdk.runs.list(id_of(inner))] == ["success", "success"]


async def test_a_caller_who_leaves_cancels_it_where_that_was_asked_for(
    remote: Remote, sdk: LangGraphClient, tmp_path: Path
) -> None:
    for on_disconnect, status in (("cancel", "interrupted"), ("continue", "success")):
        config, gate = thread(), tmp_path / on_disconnect
        given = {"count": 1, "gate": str(gate)}
        calling = asyncio.create_task(remote["waiting"].ainvoke(given, config, on_disconnect=on_disconnect))
        await until(gate.with_suffix(".started").exists)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        [run] = await sdk.runs.list(id_of(config))
        if on_disconnect == "continue":
            gate.touch()
        assert await _ending(sdk, run) == status


async def _ending(sdk: LangGraphClient, run: Any) -> str:
    status = ""

    async def ended() -> bool:
        nonlocal status
        status = (await sdk.runs.get(run["thread_id"], run["run_id"]))["status"]
        return status not in ("pending", "running")

    await until(ended)
    return status
