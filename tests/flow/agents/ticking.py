"""A graph that streams: each step says a few numbers, and may wait for a sign before it goes on."""

import operator
from typing import Annotated, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

from agents import signs
from agents.effects import effect


class State(TypedDict, total=False):
    wanted: int
    """Steps."""
    each: int
    """Numbers that a step says."""
    stops: list[int]
    """Steps that wait for the sign of their name, in the middle of what they say."""
    done: Annotated[list[int], operator.add]


def tick(state: State) -> State:
    step, each = len(state.get("done", [])), state.get("each", 5)
    say = get_stream_writer()
    effect(f"began {step}")
    for number in range(each):
        if number == each // 2 and step in state.get("stops", []):
            signs.wait_for(f"go{step}")
        say({"step": step, "number": number})
    return {"done": [step]}


def more(state: State) -> str:
    return "tick" if len(state["done"]) < state["wanted"] else END


builder = StateGraph(State)
builder.add_node("tick", tick)
builder.add_edge(START, "tick")
builder.add_conditional_edges("tick", more, ["tick", END])
graph = builder.compile()
