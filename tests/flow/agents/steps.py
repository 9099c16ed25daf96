"""A graph of as many super-steps as it is told, one after the other; each one is a side effect."""

import operator
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph

from agents import operations
from agents.effects import effect

operations.install()


class State(TypedDict, total=False):
    wanted: int
    pause: float
    done: Annotated[list[int], operator.add]


def step(state: State) -> State:
    number = len(state.get("done", [])) + 1
    time.sleep(state.get("pause", 0))
    effect(f"did step {number}")
    return {"done": [number]}


def more(state: State) -> str:
    return "step" if len(state["done"]) < state["wanted"] else END


builder = StateGraph(State)
builder.add_node("step", step)
builder.add_edge(START, "step")
builder.add_conditional_edges("step", more, ["step", END])
graph = builder.compile().with_config(recursion_limit=1000)
