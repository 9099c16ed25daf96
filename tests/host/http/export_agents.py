"""Agents whose threads are taken elsewhere: what they do leaves marks, and what they hold is large or of every kind."""

import operator
import os
import random
import time
from pathlib import Path
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

import agentvisor
from agentvisor import checkpoint


class State(TypedDict, total=False):
    ledger: str
    gate: str
    log: Annotated[list[str], operator.add]
    large: bytes


def _mark(state: State, what: str) -> None:
    with Path(state.get("ledger", os.devnull)).open("a") as ledger:
        ledger.write(f"{what}\n")


def reserve(state: State) -> State:
    agentvisor.once("reserve", lambda: _mark(state, "reserved"))
    return {"log": ["reserved"]}


def ask(state: State) -> State:
    agentvisor.once("ask", lambda: _mark(state, "asked"))
    return {"log": [f"answer {interrupt('sure?')}"]}


def wait(state: State) -> State:
    _mark(state, "begun")
    while not Path(state["gate"]).exists():
        time.sleep(0.01)
    return {"log": ["through the gate"]}


def grow(state: State) -> State:
    """Bytes that do not compress; most are the last ones again, so that they are stored as a difference."""
    seeded = random.Random(len(state.get("log", [])))
    return {"large": state.get("large", b"") + seeded.randbytes(300_000), "log": ["grown"]}


def _beside(first: object, second: object) -> StateGraph[State]:
    builder = StateGraph(State)
    for one in (first, second):
        builder.add_node(one)  # pyright: ignore[reportArgumentType]
        builder.add_edge(START, one.__name__)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    return builder


# Two tasks of one super-step: one has finished, whose writes are pending, where the other asks or is at work.
paused = _beside(reserve, ask)
at_work = _beside(reserve, wait)
growing = StateGraph(State).add_sequence([grow, ask]).add_edge(START, "grow")


def saving(given: dict[str, str]) -> dict[str, object]:
    """A plain agent: its state and its effects are the thread's."""
    before = checkpoint.load()
    agentvisor.once("told", lambda: _mark({"ledger": given["ledger"]}, "told"))
    checkpoint.save("progress", {"runs": (before["runs"] if isinstance(before, dict) else 0) + 1})
    return {"before": before}
