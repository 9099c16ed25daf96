"""Graphs whose state grows step by step, and that make it smaller when they are asked to."""

import os
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph


class Grown(TypedDict, total=False):
    items: list[str]
    trim: bool
    size: int


def grow(state: Grown) -> Grown:
    if state.get("trim"):
        return {"items": state["items"][:1]}
    return {"items": [*state.get("items", []), os.urandom(state["size"]).hex()]}


def look(state: Grown) -> Grown:
    return {}


builder = StateGraph(Grown)
builder.add_node("look", look)
builder.add_node("grow", grow)
builder.add_edge(START, "look")
builder.add_edge("look", "grow")
builder.add_conditional_edges("grow", lambda state: END if state.get("trim") else "grow")
graph = builder.compile()


def collected(old: Any, writes: Sequence[list[str]]) -> list[str]:
    return [*(old or []), *(one for write in writes for one in write)]


class Updated(TypedDict, total=False):
    items: Annotated[list[str], DeltaChannel(collected, snapshot_frequency=1000)]
    size: int


def update(state: Updated) -> Any:
    return {"items": [os.urandom(state["size"]).hex()]}


deltas = StateGraph(Updated).add_node("update", update).add_edge(START, "update")
deltas.add_edge("update", "update")
updates = deltas.compile()
