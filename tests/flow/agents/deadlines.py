"""Agents that ask with `agentvisor.interrupt` as their input says: a plain one, and graphs that ask two people."""

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

import agentvisor
from agents.effects import effect


class State(TypedDict, total=False):
    how: dict[str, Any]
    first: Any
    second: Any


def plain(given: dict[str, Any]) -> dict[str, Any]:
    first = agentvisor.interrupt("first?", **given["how"])
    effect(f"first took {first}")
    return {"first": first}


def first(state: State) -> State:
    answer = agentvisor.interrupt("first?", **state["how"])
    effect(f"first took {answer}")
    return {"first": answer}


async def second(_: State) -> State:
    answer = agentvisor.interrupt("second?", kind="other")
    effect(f"second took {answer}")
    return {"second": answer}


builder = StateGraph(State)
for node in (first, second):
    builder.add_node(node.__name__, node)
    builder.add_edge(START, node.__name__)
graph = builder.compile()


def swallows(state: State) -> State:
    try:
        agentvisor.interrupt("never mind", **state["how"])
    except Exception:  # noqa: BLE001 - what is tested: it takes LangGraph's pause for an error
        effect("swallowed")
    return {"first": "none"}


builder = StateGraph(State)
for node in (swallows, second):
    builder.add_node(node.__name__, node)
    builder.add_edge(START, node.__name__)
swallowing = builder.compile()
