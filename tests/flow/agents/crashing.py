"""A graph whose second node ends its process by SIGSEGV until the sign "repaired" is there."""

import os
import signal
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from agents import signs
from agents.effects import effect


class State(TypedDict, total=False):
    result: str


def first(state: State) -> State:
    effect("did first")
    return {}


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"result": "repaired"}


builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
builder.add_edge("second", END)
graph = builder.compile()
