"""Updates the state of a thread: the agent's graph does it in a guest; the caller is answered when it is durable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast
from uuid import uuid4

from fastapi import APIRouter
from pydantic import Field, JsonValue

from agentvisor.core.errors import (
    ERRORS,
    AgentBroken,
    AgentVisorError,
    Conflict,
    InvalidInput,
    Unavailable,
    UpdateRefused,
)
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Ending, Run, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.host.http.agents import agent_of
from agentvisor.host.http.bodies_threads import Body
from agentvisor.host.http.checkpoint_address import Address, addressed
from agentvisor.host.http.json import JsonResponse, JsonRoute, encode
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.run_create import CheckpointAddress, JsonObject, restart_policy
from agentvisor.host.http.services import Served, Services
from agentvisor.host.render import shown_metadata
from agentvisor.host.render_typed import Json
from agentvisor.protocol.v1 import run_pb2

router = APIRouter(prefix="/threads/{thread_id}", tags=["state"], route_class=JsonRoute)

Values = JsonObject | list[JsonValue] | None


class StateUpdate(Body):
    """What to write, as which node, and where."""

    values: Values = None
    as_node: str | None = Field(default=None, description="The node that writes; the last one where that is clear.")
    checkpoint: CheckpointAddress | None = Field(default=None, description="The latest, where none is named.")
    checkpoint_id: str | None = None


@router.post("/state")
async def update_state(thread_id: ThreadInPath, body: StateUpdate, services: Served) -> JsonResponse:
    """Make a new checkpoint from one of the thread, as if a node had written these values."""
    if body.checkpoint is not None and body.checkpoint.thread_id not in (None, thread_id):
        raise InvalidInput("checkpoint.thread_id is another thread", field="checkpoint.thread_id")
    if body.checkpoint_id and body.checkpoint and body.checkpoint.checkpoint_id:
        raise InvalidInput("checkpoint_id and checkpoint exclude each other: give one of them", field="checkpoint_id")
    thread = await services.threads.get(thread_id)
    where = await addressed(services, thread_id, body.checkpoint, body.checkpoint_id)
    update: dict[str, JsonValue] = {"values": body.values, "as_node": body.as_node}
    reached = await updated(services, thread_id, graph_of(services, thread), [[update]], where)
    return JsonResponse({"checkpoint": reached, "configurable": reached, "checkpoint_id": reached["checkpoint_id"]})


def graph_of(services: Services, thread: Thread) -> str:
    """The agent whose thread it is: named by its metadata, or by its last run."""
    named, last = shown_metadata(thread.metadata).get("graph_id"), thread.last_agent_run
    if isinstance(named, str) and named:
        return agent_of(services, named)
    if last is not None:
        return agent_of(services, last.spec.agent)
    raise UpdateRefused(
        f"thread {thread.thread_id} has no agent yet, which alone knows how its state changes: run one on it, or set "
        "metadata.graph_id"
    )


async def updated(
    services: Services,
    thread_id: ThreadId,
    agent: str,
    supersteps: Sequence[Sequence[Mapping[str, JsonValue]]],
    where: Address,
) -> dict[str, Json]:
    """The address of the checkpoint that the super-steps lead to; nothing is changed where one is refused.

    `UpdateRefused`, `Conflict` while a run is active, `AgentBroken`, `Unavailable`.
    """
    temporal, guest = services.config.temporal, services.config.guest
    spec = run_pb2.RunSpec(
        run_id=str(uuid4()),
        agent=agent,
        kind=run_pb2.RUN_KIND_UPDATE,
        supersteps=encode([list(one) for one in supersteps]),
        checkpoint_ns=where.namespace,
        checkpoint_id=where.checkpoint_id,
        checkpoint_map=encode(where.map) if where.map else b"",
        restart=restart_policy(services.config),
        timeout_ms=int(guest.operation_timeout.total_seconds() * 1000),
        heartbeat_timeout_ms=int(temporal.heartbeat_timeout.total_seconds() * 1000),
    )
    await services.threads.start_run(thread_id, spec, create=False, thread_metadata={})
    ended = await services.threads.wait_run(thread_id, RunId(spec.run_id))
    if ended.status is not RunStatus.SUCCESS:
        raise _refused(ended, thread_id)
    return cast("dict[str, Json]", json.loads(ended.output))


_OURS = {error.__name__: error for error in ERRORS.values()}


def _refused(run: Run, thread_id: ThreadId) -> AgentVisorError:
    """Why an update has come to nothing, by what ended it."""
    message = run.error_message
    if run.status is RunStatus.INTERRUPTED:
        return Conflict(f"the update of thread {thread_id} was cancelled")
    if run.status is RunStatus.TIMEOUT:
        return Unavailable(f"the update of thread {thread_id} took longer than guest.operation_timeout: {message}")
    match run.attempts[-1].ending if run.attempts else None:
        case Ending.COULD_NOT_START:
            return AgentBroken(f"agent {run.spec.agent!r} could not be loaded to update thread {thread_id}: {message}")
        case Ending.AGENT_ERROR if run.error_type in _OURS:
            return _OURS[run.error_type](message)
        case Ending.AGENT_ERROR if run.error_type == "InvalidUpdateError":
            return UpdateRefused(message)
        case Ending.AGENT_ERROR:
            return UpdateRefused(f"the graph does not take the update: {run.error_type}: {message}")
        case _:
            return Unavailable(f"the update of thread {thread_id} was given up: {message}")
