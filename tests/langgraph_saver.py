"""Savers over both ways to a host, and checkpoints made by hand."""

from collections.abc import Generator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from tests.client.hosts import way, way_to
from tests.client.store_double import StoreDouble

from agentvisor.client.transport import Transport
from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["CHECKPOINT", "THREAD", "at", "checkpoint", "double", "put", "saver", "transport", "way"]

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
CHECKPOINT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}


@pytest.fixture
def double() -> StoreDouble:
    return StoreDouble()


@pytest.fixture
def transport(double: StoreDouble, way: str) -> Generator[Transport]:
    with way_to(double, way) as transport:
        yield transport


@pytest.fixture
def saver(transport: Transport) -> AgentVisorCheckpointer:
    return AgentVisorCheckpointer(transport=transport)


def checkpoint(values: dict[str, Any], versions: dict[str, Any], **more: Any) -> Checkpoint:
    made: Any = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values, "channel_versions": versions}
    return made | more


def at(found: CheckpointTuple | None) -> dict[str, Any]:
    assert found is not None
    return found.checkpoint["channel_values"]


def put(
    saver: AgentVisorCheckpointer, parent: RunnableConfig, values: dict[str, Any], versions: dict[str, Any]
) -> RunnableConfig:
    """Store a checkpoint in which every channel is new."""
    return saver.put(parent, checkpoint(values, versions), {}, versions)
