"""The config that a graph runs with: the caller's, in which the run's own identity cannot be changed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from agentvisor.protocol.metadata import metadata_from_struct
from agentvisor.protocol.v1.guest_pb2 import AgentTask


def config_of(task: AgentTask) -> RunnableConfig:
    """Return it; metadata and configurable names are those of LangGraph's own server."""
    spec = task.spec
    asked: Mapping[str, object] = json.loads(spec.config) if spec.config else {}
    config = RunnableConfig(
        tags=cast("list[str]", asked.get("tags") or []),
        metadata={
            **cast("Mapping[str, object]", asked.get("metadata") or {}),
            **metadata_from_struct(spec.metadata),
            "run_id": task.run_id,
            "run_attempt": task.attempt,
            "thread_id": task.thread_id,
            "graph_id": spec.agent,
            "assistant_id": spec.assistant_id or spec.agent,
        },
        configurable=_configurable(task, cast("Mapping[str, object]", asked.get("configurable") or {})),
    )
    if isinstance(limit := asked.get("recursion_limit"), int):
        config["recursion_limit"] = limit
    if isinstance(most := asked.get("max_concurrency"), int):
        config["max_concurrency"] = most
    if isinstance(name := asked.get("run_name"), str):
        config["run_name"] = name
    # It names the run in traces, and only a UUID can.
    with contextlib.suppress(ValueError):
        config["run_id"] = UUID(task.run_id)
    return config


_ADDRESS = ("checkpoint_ns", "checkpoint_id", "checkpoint_map")


def _configurable(task: AgentTask, asked: Mapping[str, object]) -> dict[str, object]:
    # Names with two underscores are pregel's own; the checkpoint to go on from is in the specification, checked.
    configurable = {key: value for key, value in asked.items() if not (key.startswith("__") or key in _ADDRESS)}
    configurable["thread_id"] = task.thread_id
    if task.spec.checkpoint_id:
        configurable["checkpoint_id"] = task.spec.checkpoint_id
        configurable["checkpoint_ns"] = task.spec.checkpoint_ns
    if task.spec.checkpoint_map:
        configurable["checkpoint_map"] = json.loads(task.spec.checkpoint_map)
    return configurable
