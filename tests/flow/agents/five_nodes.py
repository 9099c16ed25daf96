"""Five nodes with a three-way fan-out, each with a side effect."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from agents import operations
from agents.effects import effect

operations.install()


class State(TypedDict, total=False):
    given: str
    out_plan: str
    out_left: str
    out_middle: str
    out_right: str
    out_join: str


def node(name: str) -> Any:
    def run(state: State) -> dict[str, str]:
        effect(f"did {name}")
        return {f"out_{name}": f"{name} of {state['given']}"}

    return run


builder = StateGraph(State)
for name in ("plan", "left", "middle", "right", "join"):
    builder.add_node(name, node(name))
builder.add_edge(START, "plan")
for branch in ("left", "middle", "right"):
    builder.add_edge("plan", branch)
builder.add_edge(["left", "middle", "right"], "join")
builder.add_edge("join", END)
graph = builder.compile()
