"""Agents that say when they begin, and then wait to be killed until the file GATE is there."""

import json
import os
import time
from pathlib import Path
from typing import Any, TypedDict


def begin() -> None:
    line = json.dumps({"at": time.time(), "pid": os.getpid(), "thread": os.environ["AGENTVISOR_THREAD_ID"]})
    with Path(os.environ["BEGAN"]).open("a") as file:
        file.write(line + "\n")
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.01)


def function(_given: Any) -> None:
    begin()


class State(TypedDict, total=False):
    done: bool


def make(_config: Any) -> Any:
    """A graph of one node; made in the agent's process, so that a plain function need not import LangGraph."""
    from langgraph.graph import END, START, StateGraph

    def node(_state: State) -> State:
        begin()
        return {"done": True}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()
