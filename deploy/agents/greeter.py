"""An agent to see that a deployment works: it greets, once somebody has said whom."""

from typing import TypedDict

from langgraph.graph import StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    name: str
    greeting: str


def ask(state: State) -> State:
    return {"name": state.get("name") or interrupt("Whom shall I greet?")}


def greet(state: State) -> State:
    return {"greeting": f"Hello {state['name']}"}


graph = StateGraph(State).add_sequence([ask, greet]).add_edge("__start__", "ask").compile()
