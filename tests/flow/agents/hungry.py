"""A graph whose second node uses ever more memory until the sign "repaired" is there."""

import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from agents import signs
from agents.effects import effect

MOST = 1 << 30
STEP = 8 << 20


class State(TypedDict, total=False):
    result: str


def first(state: State) -> State:
    effect("did first")
    return {}


def second(state: State) -> State:
    effect("began second")
    if not signs.sign("repaired").exists():
        kept = []
        for _ in range(0, MOST, STEP):
            kept.append(b"x" * STEP)
            time.sleep(0.001)
        time.sleep(20)
    return {"result": "repaired"}


builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_edge(START, "first")
builder.add_edge("first", "second")
builder.add_edge("second", END)
graph = builder.compile()
