"""The agents that JavaScript clients run."""

import time
from typing import Any, TypedDict

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
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


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def talk(state: MessagesState) -> dict[str, Any]:
    """Say something, then have a sum done."""
    said = GenericFakeChatModel(messages=iter([AIMessage("hello big world")])).invoke(state["messages"])
    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "call_1"}
    return {"messages": [said, AIMessage("", tool_calls=[call])]}


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
talking = StateGraph(MessagesState)
talking.add_node(talk)
talking.add_node("tools", ToolNode([add]))
talking.add_edge(START, "talk")
talking.add_edge("talk", "tools")
outer.add_node("inner", _graph(count).compile())
outer.add_edge(START, "inner")
