"""A graph that asks, a function that returns, and one that hangs."""

import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    answer: str


def ask(state: State) -> State:
    return {"answer": interrupt("Go on?")}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
builder.add_edge("ask", END)
asks = builder.compile()


def here(given: Any, context: Any) -> dict[str, Any]:
    return {"given": given, "attempt": context.attempt, "folder": str(Path.cwd())}


def hangs(given: Any) -> None:
    time.sleep(600)


def fails(given: Any) -> None:
    raise LookupError(f"no customer {given}")
