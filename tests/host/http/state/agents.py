"""Graphs whose past is visited and changed: builders, so that a test can compile the same ones in its process."""

import operator
import os
import time
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]


class Settings(TypedDict, total=False):
    model: str


def work(state: State) -> State:
    return {"count": state.get("count", 0) + 1, "log": ["worked"]}


def ask(state: State) -> State:
    return {"log": [f"answer {interrupt({'question': 'sure?'})}"]}


def last(state: State) -> State:
    return {"log": ["last"]}


def fail(state: State) -> State:
    raise ValueError("boom!")


def _line(*nodes: Any, **settings: Any) -> StateGraph[State]:
    builder = StateGraph(State, **settings)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    return builder


line = _line(work, ask, last, context_schema=Settings)
failing = _line(work, fail)

nested = StateGraph(State)
nested.add_node("child", _line(work, ask).compile())
nested.add_node("last", last)
nested.add_edge(START, "child")
nested.add_edge("child", "last")

deep = StateGraph(State)
deep.add_node("outer", nested.compile())
deep.add_edge(START, "outer")

keeping = StateGraph(State)
"""Its child keeps its state from turn to turn, in a namespace without a task's id."""
keeping.add_node("child", _line(work, ask).compile(checkpointer=True))
keeping.add_edge(START, "child")


def fan(state: State) -> list[Send]:
    return [Send("leaf", {"count": number}) for number in range(state.get("count", 0))]


def leaf(state: State) -> State:
    return {"log": [f"leaf {state.get('count')}"]}


fanning = StateGraph(State)
fanning.add_node("work", work)
fanning.add_node("leaf", leaf)
fanning.add_edge(START, "work")
fanning.add_conditional_edges("work", fan, ["leaf"])


def gated(old: list[str], new: list[str]) -> list[str]:
    """A reducer that waits for a file where it is told one: what an update of the state runs of a user's code."""
    for one in new:
        if one.startswith("gate "):
            gate = Path(one.removeprefix("gate "))
            with gate.with_suffix(".pids").open("a") as told:
                told.write(f"{os.getpid()}\n")
            while not gate.exists():
                time.sleep(0.01)
    return [*old, *new]


class Gated(TypedDict, total=False):
    log: Annotated[list[str], gated]


def note(state: Gated) -> Gated:
    return {"log": ["noted"]}


gating = StateGraph(Gated)
gating.add_sequence([note])
gating.add_edge(START, "note")


def steer(state: State) -> Command[str]:
    return Command(update={"log": ["steered"]}, goto="last")


def plain(given: Any) -> Any:
    return {"echo": given}
