"""Agents whose threads are looked at in Temporal's UI."""

import os
import time
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import StateGraph
from langgraph.types import interrupt

import agentvisor


class State(TypedDict, total=False):
    order: str
    reserved: bool
    answer: str


def reserve(state: State) -> State:
    return {"reserved": True}


def ask(state: State) -> State:
    return {"answer": interrupt(f"Refund order {state['order']}?")}


refunds = StateGraph(State).add_sequence([reserve, ask]).add_edge("__start__", "reserve").compile()


def desk(given: dict[str, Any]) -> Any:
    """Dies once, where it is told where to note that; then asks."""
    place = Path(given["died"]) if "died" in given else None
    if place is not None and not place.exists():
        place.touch()
        os.kill(os.getpid(), 9)
    return agentvisor.interrupt(
        given.get("question", "Refund order 8?"),
        kind="approval",
        deadline=86_400,
        on_deadline="answer",
        default_answer="no",
    )


def failing(given: dict[str, Any]) -> Any:
    raise ValueError(given["says"])


def holding(given: dict[str, Any]) -> Any:
    """Runs until a file is there; of what it did it leaves a line."""
    with Path(given["ledger"]).open("a") as ledger:
        print(os.getpid(), file=ledger)
    while not Path(given["until"]).exists():
        time.sleep(0.05)
    return {"done": True}
