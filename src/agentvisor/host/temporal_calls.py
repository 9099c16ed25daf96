"""Updates and queries that find their workflow whatever happens meanwhile: continue-as-new, a restart, a full queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import QueryRejectCondition, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Internal, NotFound, Unavailable
from agentvisor.host.codec.reading import answered, check_readable
from agentvisor.host.workflow.refusals import refusal

_TIMEOUT = timedelta(seconds=10)
_PATIENCE = 20.0
"""Seconds; a queue of updates that is full (Temporal lets 10 be in flight), or a restart, is waited out."""
_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_NOT_OPEN = QueryRejectCondition.NOT_OPEN


@dataclass(frozen=True, slots=True)
class Start:
    """How the workflow begins where there is none."""

    workflow: str
    state: bytes
    task_queue: str
    memo: dict[str, object]
    search_attributes: TypedSearchAttributes


async def send_update(
    client: Client, workflow_id: str, name: str, argument: bytes, *, update_id: str, start: Start | None = None
) -> bytes:
    """The answer to an update, sent again under its id until it is known.

    Raises `NotFound` where there is no such workflow and none is to be started, what the workflow refuses it with, and
    `Unavailable`.
    """
    until, pause = asyncio.get_running_loop().time() + _PATIENCE, _PAUSE
    while True:
        try:
            call = _once(client, workflow_id, name, argument, update_id=update_id, start=start)
            return await answered(client, workflow_id, call)
        except WorkflowUpdateFailedError as error:
            raise refusal(error.cause) from error
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from error  # the SDK hides that it was this task that was cancelled
            failed: Exception = error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and start is None:
                raise NotFound(f"{workflow_id} does not exist") from error
            failed = error
        await check_readable(client, workflow_id)
        if asyncio.get_running_loop().time() >= until:
            raise Unavailable(f"Temporal, or the hosts of its queue, did not answer {name}: {failed}") from failed
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _once(
    client: Client, workflow_id: str, name: str, argument: bytes, *, update_id: str, start: Start | None
) -> bytes:
    if start is None:
        handle: WorkflowHandle[object, object] = client.get_workflow_handle(workflow_id)
        return await handle.execute_update(  # pyright: ignore[reportUnknownMemberType] - Temporal's signature
            name, argument, id=update_id, result_type=bytes, rpc_timeout=_TIMEOUT
        )
    operation = WithStartWorkflowOperation[object, object](
        start.workflow,
        start.state,
        id=workflow_id,
        task_queue=start.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        memo=start.memo,
        search_attributes=start.search_attributes,
    )
    return await client.execute_update_with_start_workflow(  # pyright: ignore[reportUnknownMemberType] - the same
        name, argument, start_workflow_operation=operation, id=update_id, result_type=bytes, rpc_timeout=_TIMEOUT
    )


async def ask(client: Client, workflow_id: str, name: str, argument: bytes) -> bytes:
    """The answer to a query. `NotFound` where there is no such workflow, or it has ended; `Unavailable`."""
    handle = client.get_workflow_handle(workflow_id)
    until, pause = asyncio.get_running_loop().time() + _PATIENCE, _PAUSE
    while True:
        try:
            query = handle.query(name, argument, result_type=bytes, rpc_timeout=_TIMEOUT, reject_condition=_NOT_OPEN)
            return await answered(client, workflow_id, query)
        except WorkflowQueryRejectedError as error:
            # It went to the execution that was the current one, and has just been continued by another.
            if error.status is not WorkflowExecutionStatus.CONTINUED_AS_NEW:
                raise NotFound(f"{workflow_id} does not exist") from error
            failed: Exception = error
        except WorkflowQueryFailedError as error:
            await check_readable(client, workflow_id)
            raise Internal(f"{workflow_id} could not answer {name}: {error.message}") from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise NotFound(f"{workflow_id} does not exist") from error
            failed = error
        await check_readable(client, workflow_id)
        if asyncio.get_running_loop().time() >= until:
            raise Unavailable(f"Temporal, or the hosts of its queue, did not answer {name}: {failed}") from failed
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
