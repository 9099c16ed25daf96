"""Moves idle threads, and shelves, to this version: each continues as new, and needs no older rules any more (B16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import cast

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.core.shelf import SHELF_VERSION
from agentvisor.core.thread import STATE_VERSION
from agentvisor.host.codec.client import of_workflow
from agentvisor.host.codec.places import CRON_PREFIX
from agentvisor.host.codec.reading import state_in
from agentvisor.host.workflow.shelf import SHELF_WORKFLOW
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.v1 import items_pb2, thread_pb2

_TIMEOUT = timedelta(seconds=10)


class Migration(Enum):
    """What became of a thread; the value is what the command says."""

    ASKED = "asked: continues on this version as soon as it is idle"
    PRESENT = "on this version already"
    NEWER = "of a newer version: upgrade this program"
    GONE = "deleted meanwhile"
    SEALED = "cannot be read here: give this program the keys, and required: false for what is not encrypted"
    REWRITTEN = "crons: their schedules are written anew"
    DAMAGED = "damaged: nothing can read it any more, delete it"
    SILENT = "no host answered for it: is one running?"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Workflows that have a state with a version."""

    workflow: str
    version: int
    version_in: Callable[[bytes], int]


_KINDS = (
    _Kind(WORKFLOW, STATE_VERSION, lambda state: thread_pb2.Thread.FromString(state).version),
    _Kind(SHELF_WORKFLOW, SHELF_VERSION, lambda state: items_pb2.Shelf.FromString(state).version),
)


async def migrate_all(
    client: Client, *, everything: bool, done: Callable[[int], None] = lambda _: None
) -> Counter[Migration]:
    """Ask every thread or shelf of an older version, or of any, to continue as new.

    Those with a live run do it afterwards. `done` is told how many more there were.
    """
    outcomes = Counter[Migration]()
    for kind in _KINDS:
        async for workflow_id, run_id in _open(client, kind):
            outcomes[await _migrate(client, kind, workflow_id, run_id, everything=everything)] += 1
            done(1)
    if everything:
        async for one in await client.list_schedules():
            if one.id.startswith(CRON_PREFIX):
                outcomes[await _rewrite(client, one.id)] += 1
    return outcomes


async def _rewrite(client: Client, schedule_id: str) -> Migration:
    """What a schedule hands to the workflows that it starts is encrypted as this program encrypts."""

    async def anew(found: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = found.description.schedule
        if isinstance(schedule.action, ScheduleActionStartWorkflow):
            given = cast("Sequence[Payload]", schedule.action.args)
            schedule.action.args = await of_workflow(client, schedule_id).decode(given, [bytes] * len(given))
        return ScheduleUpdate(schedule)

    try:
        await client.get_schedule_handle(schedule_id).update(anew, rpc_timeout=_TIMEOUT)
    except RPCError as error:
        return Migration.GONE if error.status is RPCStatusCode.NOT_FOUND else Migration.SILENT
    except Sealed:
        return Migration.SEALED
    except Corrupt:
        return Migration.DAMAGED
    return Migration.REWRITTEN


async def _open(client: Client, kind: _Kind) -> AsyncGenerator[tuple[str, str]]:
    async for one in client.list_workflows(f"WorkflowType = '{kind.workflow}' AND ExecutionStatus = 'Running'"):
        yield one.id, one.run_id


async def _migrate(client: Client, kind: _Kind, workflow_id: str, run_id: str, *, everything: bool) -> Migration:
    try:
        version = kind.version_in(await _state(client, workflow_id, run_id))
        if version > kind.version:
            return Migration.NEWER
        if version == kind.version and not everything:
            return Migration.PRESENT
        handle = client.get_workflow_handle(workflow_id)
        await handle.execute_update(  # pyright: ignore[reportUnknownMemberType] - Temporal's signature
            "compact", b"", id=f"migrate-{kind.version}-{run_id}", result_type=bytes, rpc_timeout=_TIMEOUT
        )
    except RPCError as error:
        return Migration.GONE if error.status is RPCStatusCode.NOT_FOUND else Migration.SILENT
    except Sealed:
        return Migration.SEALED
    except (Corrupt, DecodeError):
        return Migration.DAMAGED
    except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
        return Migration.SILENT
    return Migration.ASKED


async def _state(client: Client, workflow_id: str, run_id: str) -> bytes:
    """What an execution began with: the argument in its first event."""
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        maximum_page_size=1,
    )
    reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
    started = reply.history.events[0].workflow_execution_started_event_attributes
    return await state_in(client, workflow_id, started)
