"""Counts the runs of its thread, and waits for the gate when it is told to."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    wait: bool
    ask: bool
    counted: Annotated[int, operator.add]
    answers: Annotated[list[str], operator.add]


def count(state: State) -> State:
    if state.get("wait"):
        from agents import signs  # notebooks, which never wait, do not have it

        signs.sign("began").touch()
        signs.wait_for("gate")
    return {"counted": 1}


def ask(state: State) -> State:
    return {"answers": [interrupt("go on?")]} if state.get("ask") else {}


def build(checkpointer: Any = None) -> Any:
    builder = StateGraph(State)
    builder.add_node("count", count)
    builder.add_node("ask", ask)
    builder.add_edge(START, "count")
    builder.add_edge("count", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=checkpointer)


graph = build()
