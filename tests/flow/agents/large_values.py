"""A graph whose state is as large as its input says; each step makes new noise."""

import os
import random
import string
import time
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from agentvisor.langgraph import AgentVisorCheckpointer


class State(TypedDict, total=False):
    sizes: dict[str, int]
    wait: bool
    a: str
    b: str
    c: str
    done: bool


def noise(size: int, seed: str) -> str:
    """Text that hardly compresses: three quarters of its length are left."""
    letters = string.ascii_letters + string.digits + "+/"
    return "".join(random.Random(seed).choices(letters, k=size))


def make(state: State) -> State:
    return {name: noise(size, name) for name, size in state["sizes"].items()}  # type: ignore[return-value]


def check(state: State) -> State:
    gate = Path(os.environ["GATE"])
    while state.get("wait") and not gate.exists():
        time.sleep(0.02)
    for name, size in state["sizes"].items():
        assert state[name] == noise(size, name), name  # type: ignore[literal-required]
    return {"done": True}


graph = (
    StateGraph(State)
    .add_node("make", make)
    .add_node("check", check)
    .add_edge(START, "make")
    .add_edge("make", "check")
    .add_edge("check", END)
    .compile(checkpointer=AgentVisorCheckpointer())
)
