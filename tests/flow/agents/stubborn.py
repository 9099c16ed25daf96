"""A graph whose second node is blocked, and hears no signal that a process can refuse to hear."""

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
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    effect("began second")
    while not signs.sign("repaired").exists():
        pass  # it does not even let other threads work for long
    return {"result": "repaired"}


builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
builder.add_edge("second", END)
graph = builder.compile()
