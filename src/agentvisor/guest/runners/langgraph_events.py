"""LangChain's own events of a graph's run ("events"), with the stream of the graph itself between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from agentvisor.guest.runners.langgraph_graph import Graph
from agentvisor.protocol.v1.guest_pb2 import AgentTask

EVENTS = "events"

_HIDDEN = "langsmith:hidden"
"""A tag of what LangGraph does for itself."""

Event = tuple[tuple[str, ...], str, object]
"""Namespace, mode, payload."""


async def with_events(
    graph: Graph, task: AgentTask, given: object, config: RunnableConfig, **options: Any
) -> AsyncIterator[Event]:
    """What `astream` yields with these options, and each event of the run and all that it calls.

    The graph's own events bear the agent's name and, as on LangGraph's server, the run's id in its first attempt.
    LangChain queues events without a bound: a graph that is faster than its readers fills memory, as it does on
    LangGraph's server.
    """
    root = ""
    named: RunnableConfig = {"run_name": task.spec.agent, **config}
    if task.attempt == 1:
        named["run_id"] = UUID(task.run_id)
    async for event in graph.astream_events(given, named, version="v2", **options):
        root = root or event["run_id"]
        if _HIDDEN in event.get("tags", ()):
            continue
        if event["event"] == "on_chain_stream" and event["run_id"] == root:
            yield cast("Event", event["data"]["chunk"])
        else:
            yield (), EVENTS, event


def debug_shown(payload: object) -> object:
    """A "debug" payload as LangGraph's server shows it: a checkpoint says where it is, as one sends it back."""
    told = cast("Mapping[str, Any]", payload)
    if told.get("type") != "checkpoint":
        return payload
    checkpoint = told["payload"]
    shown = {
        **checkpoint,
        "checkpoint": _address(checkpoint["config"]),
        "parent_checkpoint": _address(checkpoint.get("parent_config")),
        "tasks": [_task(one) for one in checkpoint["tasks"]],
    }
    return {**told, "payload": shown}


def _address(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    place: Mapping[str, Any] = (config or {}).get("configurable") or {}
    if not place.get("thread_id") or not place.get("checkpoint_id"):
        return None
    names = ("checkpoint_id", "thread_id", "checkpoint_ns", "checkpoint_map")
    return {name: place[name] for name in names if name in place}


def _task(task: Mapping[str, Any]) -> Mapping[str, Any]:
    state: Mapping[str, Any] = task.get("state") or {}
    place: Mapping[str, Any] | None = state.get("configurable")
    if not place:
        return task
    return {**{name: value for name, value in task.items() if name != "state"}, "checkpoint": place}
