"""A graph whose second node fails, by an exception or an exit, until the sign "repaired" is there."""

import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from agents import signs
from agents.effects import effect


class State(TypedDict, total=False):
    ends: str
    result: str


def first(state: State) -> State:
    effect("did first")
    return {}


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        if state["ends"] == "exit":
            sys.exit(3)
        raise LookupError("no customer 42")
    effect("did second")
    return {"result": "repaired"}


builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
builder.add_edge("second", END)
graph = builder.compile()
