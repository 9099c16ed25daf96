"""What a saver's calls say to values, writes and records that are too large; each is timed, in the agent."""

import os
import time
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, StateGraph

from agentvisor.langgraph import AgentVisorCheckpointer

DELTA = "items"


def said(call: Callable[[], Any]) -> dict[str, Any]:
    """How a call ended, and after how many seconds."""
    began = time.monotonic()
    try:
        call()
    except Exception as error:  # noqa: BLE001 - how it ended is the result
        ended = {"error": type(error).__name__, "message": str(error), **getattr(error, "details", {})}
    else:
        ended = {"error": "", "message": ""}
    return {**ended, "seconds": time.monotonic() - began}


def checkpoint(values: dict[str, Any]) -> Any:
    versions = dict.fromkeys(values, f"{time.monotonic_ns()}")
    return {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values, "channel_versions": versions}


def put(saver: AgentVisorCheckpointer, values: dict[str, Any], metadata: Any = None, namespace: str = "") -> Any:
    one = checkpoint(values)
    config: Any = {"configurable": {"checkpoint_ns": namespace}}
    return saver.put(config, one, metadata or {}, one["channel_versions"])


def noise(size: int) -> bytes:
    return os.urandom(size)


def values(sizes: list[int]) -> list[dict[str, Any]]:
    """Checkpoints with one channel of each size, which does not compress."""
    saver = AgentVisorCheckpointer()
    return [said(lambda size=size: put(saver, {"small": 1, "big": noise(size)})) for size in sizes]


def together(sizes: list[int]) -> list[dict[str, Any]]:
    """One checkpoint with a channel of each size, and then a small one."""
    saver = AgentVisorCheckpointer()
    large = {f"part_{number}": noise(size) for number, size in enumerate(sizes)}
    return [said(lambda: put(saver, large)), said(lambda: put(saver, {"small": 1}))]


def writes(channel: str, sizes: list[int]) -> list[dict[str, Any]]:
    """Pending writes of each size to a channel."""
    saver = AgentVisorCheckpointer()
    delta: Any = DeltaChannel(lambda old, new: [*old, *new], list)
    delta.key = DELTA
    stored = put(saver, {"small": 1})
    delta.from_checkpoint(None)  # as LangGraph does, when a graph with such a channel begins
    return [
        said(lambda size=size, number=number: saver.put_writes(stored, [(channel, noise(size))], f"task-{number}"))
        for number, size in enumerate(sizes)
    ]


def records() -> list[dict[str, Any]]:
    """Metadata, channels and namespaces beyond their limits, and a value that compresses well."""
    saver = AgentVisorCheckpointer()
    many = {f"channel_number_{number}": None for number in range(6_000)}
    return [
        said(lambda: put(saver, {"small": 1}, {"long": "x" * 100_000})),
        said(lambda: put(saver, many)),
        said(lambda: put(saver, {"big": "x" * 5_000_000})),
        *(said(lambda number=number: put(saver, {"small": 1}, None, f"node:{number}")) for number in range(5)),
    ]


class State(TypedDict):
    document: bytes


def load(state: State) -> State:
    """A node whose state is too large."""
    return {"document": noise(2_100_000)}


graph = StateGraph(State).add_node("load", load).add_edge(START, "load").compile()
