"""Two quick tasks and a slow one in one super-step, then a question for a person."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agents import operations, signs
from agents.effects import effect

operations.install()


class State(TypedDict, total=False):
    done: Annotated[list[str], operator.add]
    answer: str


def quick(name: str):
    def run(state: State) -> State:
        effect(f"did {name}")
        return {"done": [name]}

    return run


def slow(state: State) -> State:
    effect("began slow")
    signs.wait_for("gate")
    effect("did slow")
    return {"done": ["slow"]}


def ask(state: State) -> State:
    answer = interrupt({"question": "Go on?", "done": sorted(state["done"])})
    effect(f"answered {answer}")
    return {"answer": answer}


builder = StateGraph(State)
builder.add_node("one", quick("one"))
builder.add_node("two", quick("two"))
builder.add_node("slow", slow)
builder.add_node("ask", ask)
for start in ("one", "two", "slow"):
    builder.add_edge(START, start)
builder.add_edge(["one", "two", "slow"], "ask")
builder.add_edge("ask", END)
graph = builder.compile()
