"""Stores checkpoints with metadata of all kinds, good and bad."""

import math
import operator
import os
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph

from agentvisor.langgraph import AgentVisorCheckpointer

GOOD: dict[str, Any] = {
    "int": 42,
    "zero": 0,
    "negative": -7,
    "largest": 2**53,
    "float": 1.5,
    "integral float": 3.0,
    "true": True,
    "none": None,
    "text": "é😀",
    "list": [1, 1.0, "x", [], {}],
    "object": {"deep": {"deeper": [1, 2.5]}},
}

BAD: dict[str, Any] = {
    "too large": 2**53 + 1,
    "too small": -(2**53) - 1,
    "nan": math.nan,
    "infinite": math.inf,
    "function": len,
    "bytes": b"x",
    "set": {1},
    "message": HumanMessage("hi"),
    "half a character": "\ud800",
    "number as key": {1: "x"},
}


def good() -> bool:
    """Whether it comes back as what it was, types included."""
    saver = AgentVisorCheckpointer()
    stored = saver.put({"configurable": {}}, empty_checkpoint(), dict(GOOD), {})  # type: ignore[arg-type]
    found = saver.get_tuple(stored)
    assert found is not None
    back = {key: found.metadata[key] for key in GOOD}
    return repr(back) == repr(GOOD)


def bad() -> dict[str, str]:
    """What is said of each, alone and inside a list; empty where it was taken."""
    saver = AgentVisorCheckpointer()
    said: dict[str, str] = {}
    for name, value in BAD.items():
        for shape, wrapped in ((name, value), (f"{name} in a list", [{"inner": value}])):
            try:
                saver.put({"configurable": {}}, empty_checkpoint(), {name: wrapped}, {"channel": "1"})  # type: ignore[arg-type]
            except ValueError as error:
                said[shape] = f"{type(error).__name__}: {error}"
            else:
                said[shape] = ""
    return said


class Words(TypedDict):
    words: Annotated[list[str], operator.add]


def forged(says: str | None, word: str) -> None:
    """A graph of its own, whose checkpoints say that another run has made them, or none."""
    builder = StateGraph(Words)
    builder.add_node("say", lambda state: {"words": [word]})
    builder.add_edge(START, "say")
    graph = builder.compile(checkpointer=AgentVisorCheckpointer())
    own: Any = {"configurable": {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}}
    graph.invoke({"words": []}, own if says is None else {**own, "metadata": {"run_id": says}})
