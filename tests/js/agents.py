"""The agents that JavaScript clients run."""

import time
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    by: int
    count: int


def count(state: State) -> State:
    return {"count": state.get("count", 0) + state["by"]}


def hold(state: State) -> State:
    """Goes on until it is cancelled."""
    while True:
        time.sleep(0.05)


def fail(state: State) -> State:
    raise ValueError("boom")


def ask(state: State) -> State:
    return {"count": state.get("count", 0) + interrupt("go on?")}


def _graph(node: Any) -> StateGraph[State]:
    builder = StateGraph(State)
    builder.add_node(node)
    builder.add_edge(START, node.__name__)
    return builder


counting = _graph(count)
slow = _graph(hold)
failing = _graph(fail)
asking = _graph(ask)
outer = StateGraph(State)
outer.add_node("inner", _graph(count).compile())
outer.add_edge(START, "inner")
