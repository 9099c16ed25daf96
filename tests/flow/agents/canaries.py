"""An agent that is given secrets of its users, and fails with them in its hands."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

BIRD = "can" + "ary"  # tracebacks show lines of this file, and none of them may hold the word


class State(TypedDict, total=False):
    given: str
    kept: str
    how: str
    answer: Any


def keep(state: State) -> dict[str, Any]:
    return {"kept": f"{BIRD}-value {state['given']}"}


def ends(state: State) -> dict[str, Any]:
    if state["how"] == "asks":
        return {"answer": interrupt({f"{BIRD}-question": state["given"]})}
    if state["how"] == "unstorable":
        return {"answer": lambda: state["given"]}
    raise ValueError(f"{BIRD}-error {state['given']}\nand {state['kept']}")


graph = StateGraph(State)
graph.add_node("keep", keep)
graph.add_node("ends", ends)
graph.add_edge(START, "keep")
graph.add_edge("keep", "ends")
graph.add_edge("ends", END)
