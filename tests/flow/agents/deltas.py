"""Graphs whose state lives in the writes of tasks: LangGraph's DeltaChannel, snapshots far apart; and questions."""

import os
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agentvisor.langgraph import AgentVisorCheckpointer


def extend(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


class Log(TypedDict):
    n: int
    most: int
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]
    rare: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]


def _step(state: Log) -> dict[str, Any]:
    n = state["n"] + 1
    rare = {"rare": [f"r{n}"]} if n % 20 == 0 else {}
    return {"n": n, "log": [f"l{n}"], **rare}


def _inner() -> Any:
    class Inner(TypedDict):
        log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]

    inner = StateGraph(Inner)
    inner.add_node("first", lambda _: {"log": ["first"]})
    inner.add_node("second", lambda state: {"log": [f"after {len(state['log'])}"]})
    inner.add_edge(START, "first")
    inner.add_edge("first", "second")
    inner.add_edge("second", END)
    return inner.compile(checkpointer=True)


def logging() -> Any:
    """As many steps as its input says, each with an entry; at each tenth a subgraph that keeps its own log."""
    inner = _inner()

    def sub(_: Log) -> dict[str, Any]:
        found = inner.invoke({"log": []})
        return {"log": [f"s{len(found['log'])}"]}

    builder = StateGraph(Log)
    builder.add_node("step", _step)
    builder.add_node("sub", sub)
    builder.add_edge(START, "step")

    def after(state: Log) -> str:
        if state["n"] % 10 == 0:
            return "sub"
        return END if state["n"] >= state["most"] else "step"

    builder.add_conditional_edges("step", after, ["step", "sub", END])
    builder.add_conditional_edges("sub", lambda state: END if state["n"] >= state["most"] else "step", ["step", END])
    return builder.compile(checkpointer=AgentVisorCheckpointer())


class Asked(TypedDict):
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]


def asking() -> Any:
    """Two questions at once, after one entry; each answer is an entry."""

    def ask(name: str) -> Any:
        def node(_: Asked) -> dict[str, Any]:
            return {"log": [f"{name}={interrupt(name)}"]}

        return node

    builder = StateGraph(Asked)
    builder.add_node("before", lambda _: {"log": ["before"]})
    builder.add_node("left", ask("left"))
    builder.add_node("right", ask("right"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "left")
    builder.add_edge("before", "right")
    builder.add_edge("left", END)
    builder.add_edge("right", END)
    return builder.compile(checkpointer=AgentVisorCheckpointer())


def read(name: str) -> dict[str, Any]:
    """The thread's state, as the graph of that name reads it in a fresh process."""
    config: Any = {"configurable": {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}}
    return dict({"logging": logging, "asking": asking}[name]().get_state(config).values)
