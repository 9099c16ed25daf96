"""One super-step of three tasks: one writes to a delta channel, one does not, one is slow. Then a question."""

import operator
import os
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agents.effects import effect


class State(TypedDict, total=False):
    items: Annotated[list[str], DeltaChannel(lambda old, new: [*old, *(one for some in new for one in some)])]
    done: Annotated[list[str], operator.add]
    told: list[str]


def adds(state: State) -> Any:
    effect("did adds")
    return {"items": ["added"], "done": ["adds"]}


def quick(state: State) -> Any:
    effect("did quick")
    return {"done": ["quick"]}


def slow(state: State) -> Any:
    effect("began slow")
    gate = Path(os.environ["GATE"])
    while not gate.exists():
        time.sleep(0.02)
    return {"items": ["slowly"], "done": ["slow"]}


def ask(state: State) -> Any:
    answer = interrupt("sure?")
    return {"told": [*sorted(state["items"]), answer]}


graph = StateGraph(State)
for node in (adds, quick, slow, ask):
    graph.add_node(node.__name__, node)
for start in ("adds", "quick", "slow"):
    graph.add_edge(START, start)
graph.add_edge(["adds", "quick", "slow"], "ask")
graph.add_edge("ask", END)
