"""Threads and runs as LangGraph's API shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from agentvisor.core.expiry import expires_at_ms
from agentvisor.core.runs import Attempt, Multitask, Run, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.host.http.agents import assistant_id
from agentvisor.host.http.times import iso
from agentvisor.host.render import shown_metadata
from agentvisor.host.render_typed import Json, render
from agentvisor.protocol.metadata import metadata_from_struct
from agentvisor.protocol.v1 import run_pb2

_STRATEGIES = {one: one.name.lower() for one in Multitask}


def thread_json(thread: Thread, values: Json, interrupts: Mapping[str, Json]) -> dict[str, Json]:
    """A Thread; `values` are those of the root's head."""
    last = thread.last_agent_run
    metadata: dict[str, Json] = shown_metadata(thread.metadata)
    if last is not None:
        metadata = {"graph_id": last.spec.agent, "assistant_id": assistant_id(last.spec.agent), **metadata}
    return {
        "thread_id": thread.thread_id,
        "created_at": iso(thread.created_at_ms),
        "updated_at": iso(thread.updated_at_ms),
        "state_updated_at": iso(thread.state_updated_at_ms or thread.created_at_ms),
        "metadata": metadata,
        "status": thread.status.value,
        "config": {},
        "values": values,
        "interrupts": dict(interrupts),
        "error": thread_error(thread),
    }


def ttl_json(thread: Thread) -> Json:
    """A thread's time to live; `expires_at` is null while it is not counted: a run is at work, or a question waits."""
    lifetime = thread.lifetime
    if lifetime is None:
        return None
    at = expires_at_ms(thread)
    return {
        "strategy": lifetime.strategy.name.lower(),
        "ttl_minutes": lifetime.ttl_ms / 60_000,
        "while_waiting": lifetime.while_waiting,
        "expires_at": iso(at) if at is not None else None,
    }


def thread_error(thread: Thread) -> Json:
    """Why the thread's status is error."""
    if thread.failure:
        return {"error": "ThreadFailed", "message": thread.failure}
    last = thread.last_run
    return None if last is None else run_error(last)


def run_error(run: Run) -> Json:
    """The error that a run ended with, as `{"error": class, "message": text}`; also why it was not rolled back."""
    if run.status not in (RunStatus.ERROR, RunStatus.TIMEOUT) and not run.error_type:
        return None
    return {"error": run.error_type, "message": run.error_message}


RUN_FIELDS = (
    "run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs",
    "multitask_strategy", "error", "attempts",
)  # fmt: skip


def run_json(thread_id: str, run: Run) -> dict[str, Json]:
    """A Run; `attempts` and `error` are ours."""
    spec = run_pb2.RunSpec.FromString(run.spec.body)
    metadata: dict[str, Json] = {**metadata_from_struct(spec.metadata)}
    return {
        "run_id": run.run_id,
        "thread_id": thread_id,
        "assistant_id": spec.assistant_id or assistant_id(spec.agent),
        "created_at": iso(run.created_at_ms),
        "updated_at": iso(run.updated_at_ms),
        "status": run.status.name.lower(),
        "metadata": metadata,
        "kwargs": _kwargs(spec),
        "multitask_strategy": _STRATEGIES[run.spec.multitask],
        "error": run_error(run),
        "attempts": [_attempt(one) for one in run.attempts],
    }


def modes_of(run: Run) -> list[str]:
    """The stream modes that the caller asked for."""
    spec = run_pb2.RunSpec.FromString(run.spec.body)
    modes = _kwargs(spec).get("stream_mode")
    return [str(one) for one in modes] if isinstance(modes, list) else list(spec.stream_modes)


def output_json(run: Run) -> Json:
    """What a plain agent returned."""
    return render("json", run.output) if run.output else None


def _kwargs(spec: run_pb2.RunSpec) -> dict[str, Json]:
    """The run as it was asked for. Lists leave the large fields out."""
    given = {"input": spec.input, "command": spec.command, "config": spec.config, "context": spec.context}
    return {
        **{name: cast("Json", json.loads(value)) for name, value in given.items() if value},
        "stream_subgraphs": spec.stream_subgraphs,
        "interrupt_before": list[Json](spec.interrupt_before),
        "interrupt_after": list[Json](spec.interrupt_after),
        "durability": spec.durability,
        "checkpoint_id": spec.checkpoint_id or None,
        **(cast("dict[str, Json]", json.loads(spec.kwargs)) if spec.kwargs else {}),
    }


def _attempt(attempt: Attempt) -> dict[str, Json]:
    def at(milliseconds: int) -> str | None:
        return iso(milliseconds) if milliseconds else None

    return {
        "attempt": attempt.attempt,
        "scheduled_at": at(attempt.scheduled_at_ms),
        "started_at": at(attempt.started_at_ms),
        "ended_at": at(attempt.ended_at_ms),
        "ending": attempt.ending.name.lower() if attempt.ending else None,
        "reason": attempt.reason or None,
        "host_id": attempt.host_id or None,
    }
