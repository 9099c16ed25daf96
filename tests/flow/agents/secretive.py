"""An agent that has a secret in everything that it may hand to its host."""

import os
from typing import Any

from langgraph.config import get_store
from langgraph.graph import StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

import agentvisor
from agentvisor import thread_state


class State(TypedDict, total=False):
    text: str
    value: str
    large: bytes
    answer: str


def work(state: State) -> dict[str, Any]:
    print("canary-log")
    thread_state.set("note", {"text": "canary-state"})
    agentvisor.once("canary-effect-key", lambda: "canary-effect")
    get_store().put(("canary-namespace",), "canary-item-key", {"text": "canary-item"})
    return {"value": "canary-value", "large": b"canary-large" + os.urandom(60_000)}


def ask(state: State) -> dict[str, Any]:
    return {"answer": interrupt("canary-question")}


def fails(state: State) -> dict[str, Any]:
    raise CanaryError("canary-error")


class CanaryError(Exception):
    pass


asks = StateGraph(State).add_sequence([work, ask]).add_edge("__start__", "work").compile()
breaks = StateGraph(State).add_node("fails", fails).add_edge("__start__", "fails").compile()
