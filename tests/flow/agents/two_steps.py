"""A graph of two nodes: the first does something, the second is what a test is about."""

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from agents.effects import effect


class State(TypedDict, total=False):
    ends: str
    result: str


def first(state: State) -> State:
    effect("did first")
    return {}


def two_steps(second: Callable[[State], State]) -> Any:
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile()
