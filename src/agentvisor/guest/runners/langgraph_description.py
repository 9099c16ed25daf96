"""Describes a graph: how it is drawn, and JSON Schemas of what it and its subgraphs take, give and hold."""

from __future__ import annotations

import typing
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Protocol, cast

import typing_extensions
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, create_model

from agentvisor.client.socketpair import Channel
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.runners.langgraph_graph import graph_of
from agentvisor.guest.runners.langgraph_json import to_json
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Description, Outcome

Schema = dict[str, object]


class Drawn(Protocol):
    """LangChain's picture of a graph."""

    def to_json(self) -> dict[str, list[dict[str, object]]]: ...


class Held(Protocol):
    """A channel of a graph."""

    @property
    def UpdateType(self) -> object: ...  # noqa: N802 (LangGraph's name)


class Described(Protocol):
    """A compiled graph (`Pregel`), as far as it is described: its generic parameters are the user's business."""

    channels: Mapping[str, Held]

    @property
    def stream_channels_list(self) -> list[str]: ...

    async def aget_graph(self, *, xray: int | bool) -> Drawn: ...

    def aget_subgraphs(self, *, namespace: str | None, recurse: bool) -> AsyncIterator[tuple[str, Described]]: ...

    def get_input_jsonschema(self) -> Schema: ...

    def get_output_jsonschema(self) -> Schema: ...

    def get_context_jsonschema(self) -> Schema | None: ...


def describe_graph(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:  # noqa: ARG001 (a runner's signature)
    """What is asked for of it; the graph is made, and not run."""
    return cancellation.run(_described(agent, task))


async def _described(agent: object, task: AgentTask) -> Outcome:
    asked, name = task.description, task.spec.agent
    config = RunnableConfig(configurable={}, metadata={"graph_id": name})
    async with AsyncExitStack() as stack:
        graph = cast("Described", cast("object", await graph_of(agent, config, stack)))
        match asked.part:
            case Description.PART_GRAPH:
                found: object = await _drawn(graph, asked.xray)
            case Description.PART_SCHEMAS:
                found = {"graph_id": name, **_schemas(graph, name)}
            case _:
                below = graph.aget_subgraphs(namespace=asked.namespace or None, recurse=asked.recurse)
                found = {place: _schemas(one, place) async for place, one in below}
    return Outcome(kind=Outcome.KIND_COMPLETED, output=to_json(found))


async def _drawn(graph: Described, xray: int) -> object:
    """As LangGraph's server shows it: of a node's implementation its name alone."""
    depth: int | bool = True if xray < 0 else xray
    drawn = (await graph.aget_graph(xray=depth)).to_json()
    for node in drawn["nodes"]:
        data = node.get("data")
        if isinstance(data, dict):
            cast("dict[str, object]", data).pop("id", None)
    return drawn


def _schemas(graph: Described, name: str) -> Mapping[str, object]:
    """JSON Schemas; None for what has none, because pydantic knows no schema for one of its types."""
    builder: object = getattr(graph, "builder", None)
    context: object = getattr(graph, "context_schema", None)
    return {
        "input_schema": _first(
            graph.get_input_jsonschema, lambda: _of_hints(f"{name}_input", getattr(builder, "input_schema", None))
        ),
        "output_schema": _first(
            graph.get_output_jsonschema, lambda: _of_hints(f"{name}_output", getattr(builder, "output_schema", None))
        ),
        "state_schema": _first(lambda: _of_channels(f"{name}_state", graph)),
        "config_schema": {},
        "context_schema": None
        if context is None
        else _first(graph.get_context_jsonschema, lambda: _of_hints(f"{name}_context", context)),
    }


def _first(*ways: Callable[[], Schema | None]) -> Schema | None:
    """By the first way that works."""
    for way in ways:
        try:
            return way()
        except Exception:  # noqa: BLE001, S112 (a user's types may raise anything; the other schemas are shown)
            continue
    return None


def _of_hints(name: str, schema: object) -> Schema:
    """Of a class by its annotations: pydantic refuses `typing.TypedDict` itself on Python before 3.12."""
    if not isinstance(schema, type):
        raise TypeError(name)
    hints = cast("dict[str, object]", typing.get_type_hints(schema, include_extras=True))
    required = cast("frozenset[str]", getattr(schema, "__required_keys__", frozenset[str]()))
    fields = {key: (_bare(hint), ... if key in required else None) for key, hint in hints.items()}
    return _model(name, fields)


def _bare(hint: object) -> object:
    marks = (typing_extensions.Required, typing_extensions.NotRequired)
    return typing_extensions.get_args(hint)[0] if typing_extensions.get_origin(hint) in marks else hint


def _of_channels(name: str, graph: Described) -> Schema:
    """What the state holds, by channel, as it is updated."""
    return _model(name, {one: (graph.channels[one].UpdateType, None) for one in graph.stream_channels_list})


def _model(name: str, fields: Mapping[str, tuple[object, object]]) -> Schema:
    make = cast("Callable[..., type[BaseModel]]", create_model)
    return make(name, **fields).model_json_schema()
