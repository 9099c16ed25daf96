"""Tools that take their time, in a graph, in a subgraph and alone: each notes its begin and its end."""

import operator
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

import agentvisor
from agents import signs
from agents.effects import effect
from agentvisor.langgraph import AgentVisorCheckpointer


class State(TypedDict, total=False):
    wanted: int
    seconds: float
    gates: list[int]
    done: Annotated[list[int], operator.add]


def tool(state: State) -> State:
    number = len(state.get("done", [])) + 1
    _work(str(number), state.get("seconds", 0.0), gated=number in state.get("gates", []))
    return {"done": [number]}


def more(state: State) -> str:
    return "tool" if len(state["done"]) < state["wanted"] else END


def function(given: dict[str, Any]) -> str:
    """A plain agent, which stores nothing."""
    _work("function", given.get("seconds", 0.0), gated=given.get("gated", False))
    return "worked"


def _work(name: str, seconds: float, *, gated: bool) -> None:
    effect(f"began {name}")
    time.sleep(seconds)
    if gated:
        signs.wait_for(f"gate {name}")
    effect(f"ended {name}")


builder = StateGraph(State)
builder.add_node("tool", tool)
builder.add_edge(START, "tool")
builder.add_conditional_edges("tool", more, ["tool", END])
inner = builder.compile()
forgetful = builder.compile(checkpointer=False)
graph = inner.with_config(recursion_limit=1000)


def called(given: State) -> Any:
    """A plain agent that calls a graph, and says of which run: LangGraph comes back to that where it was."""
    keeping = builder.compile(checkpointer=AgentVisorCheckpointer())
    return keeping.invoke(given, {"metadata": {"run_id": agentvisor.current_run().run_id}})


def calls_one_that_keeps_nothing(state: State) -> State:
    """A tool that is a graph of its own, with no checkpoints: it has to come to its end."""
    # A durability of its own: LangGraph 1.2 fails where such a graph takes over "sync" from the one around it.
    found = forgetful.invoke({**state, "done": []}, {"recursion_limit": 1000}, durability="exit")
    return {"done": found["done"]}


keeper = StateGraph(State)
keeper.add_node("calls", calls_one_that_keeps_nothing)
keeper.add_node("tool", tool)
keeper.add_edge(START, "calls")
keeper.add_edge("calls", "tool")
keeper.add_edge("tool", END)
calling = keeper.compile()
"""One step of the root calls a graph without a checkpointer; another follows."""

outer = StateGraph(State)
outer.add_node("inner", inner)
outer.add_edge(START, "inner")
outer.add_edge("inner", END)
nested = outer.compile()
"""One step of the root, in which a subgraph takes many."""
