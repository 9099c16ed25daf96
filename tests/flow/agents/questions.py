"""Two people are asked at the same time; what they answer has side effects."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agents import operations
from agents.effects import effect

operations.install()


class State(TypedDict, total=False):
    legal: str
    money: str


def legal(state: State) -> State:
    answer = interrupt("Is it legal?")
    effect(f"legal took {answer}")
    return {"legal": answer}


def money(state: State) -> State:
    answer = interrupt("Is it paid?")
    effect(f"money took {answer}")
    return {"money": answer}


def both(state: State) -> State:
    effect("did both")
    return {}


builder = StateGraph(State)
for node in (legal, money, both):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "legal")
builder.add_edge(START, "money")
builder.add_edge(["legal", "money"], "both")
builder.add_edge("both", END)
graph = builder.compile()
