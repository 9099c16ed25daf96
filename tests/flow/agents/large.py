"""Graphs whose values do not fit: one value of the size that the input names, or pieces until it is too much."""

import operator
import os
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    size: int
    times: int
    document: bytes
    pieces: Annotated[list[bytes], operator.add]
    number: int


def piece(state: State) -> State:
    return {"pieces": [os.urandom(state["size"])]}


def again(state: State) -> str:
    return "piece" if len(state["pieces"]) < state["times"] else END


def graph_of_one() -> Any:
    builder = StateGraph(State)
    builder.add_node("begin", lambda state: {"pieces": []})
    # What does not compress.
    builder.add_node("load", lambda state: {"document": os.urandom(state["size"])})
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "load")
    builder.add_edge("load", END)
    return builder.compile()


def graph_of_many() -> Any:
    builder = StateGraph(State)
    builder.add_node("piece", piece)
    builder.add_edge(START, "piece")
    builder.add_conditional_edges("piece", again)
    return builder.compile()


def graph_of_a_number() -> Any:
    builder = StateGraph(State)
    builder.add_node("count", lambda state: {"number": 10**30})
    builder.add_edge(START, "count")
    builder.add_edge("count", END)
    return builder.compile()
