"""Updates and queries that find their workflow whatever happens meanwhile: continue-as-new, a restart, a full queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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
from agentvisor.host.workflow.refusals import refusal, was_dropped

_TIMEOUT = timedelta(seconds=10)
_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_HOPELESS = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)
"""What Temporal will answer again, however long one waits."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the workflow begins where there is none."""

    workflow: str
    state: bytes
    task_queue: str
    memo: dict[str, object] | None = None
    search_attributes: TypedSearchAttributes | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Updates and queries to the workflows of one kind: all of them are waited for equally long.

    `NotFound` where there is no such workflow, or it has ended; `Unavailable` where Temporal, or a worker, does not
    answer in that time.
    """

    client: Client
    kind: str
    """What the workflows are to a reader of an error: `thread`."""
    update_patience: float
    """Seconds from which a call is not made again: a restart of Temporal, or a queue of updates that is full (it lets
    10 be in flight), is waited out until then."""
    query_patience: float
    """The same of queries: behind a workflow task Temporal buffers one, and refuses others."""

    async def update(
        self, workflow_id: str, name: str, argument: bytes, *, update_id: str | None, start: Start | None = None
    ) -> bytes:
        """The answer to an update, sent again under its id until it is known; what it is refused with is raised.

        Without an id, it must do no harm that the update is made twice.
        """
        failed: Exception | None = None
        async for _ in _tries(self.update_patience):
            try:
                return await self._update_once(workflow_id, name, argument, update_id, start)
            except WorkflowUpdateFailedError as error:
                if not was_dropped(error.cause):
                    raise refusal(error.cause) from error
                failed = error
            except WorkflowUpdateRPCTimeoutOrCancelledError as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError from error  # the SDK hides that it was this task that was cancelled
                failed = error
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND and start is None:
                    raise self._missing(workflow_id) from error
                if error.status in _HOPELESS:
                    raise self._silent(workflow_id, name, error) from error
                failed = error
        raise self._silent(workflow_id, name, failed) from failed

    async def _update_once(
        self, workflow_id: str, name: str, argument: bytes, update_id: str | None, start: Start | None
    ) -> bytes:
        if start is None:
            handle: WorkflowHandle[object, object] = self.client.get_workflow_handle(workflow_id)
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
        return await self.client.execute_update_with_start_workflow(  # pyright: ignore[reportUnknownMemberType] - the same
            name, argument, start_workflow_operation=operation, id=update_id, result_type=bytes, rpc_timeout=_TIMEOUT
        )

    async def ask(self, workflow_id: str, name: str, argument: bytes) -> bytes:
        """The answer to a query."""
        handle = self.client.get_workflow_handle(workflow_id)
        failed: Exception | None = None
        async for _ in _tries(self.query_patience):
            try:
                return await handle.query(
                    name,
                    argument,
                    result_type=bytes,
                    rpc_timeout=_TIMEOUT,
                    reject_condition=QueryRejectCondition.NOT_OPEN,
                )
            except WorkflowQueryRejectedError as error:
                # Deleted: what Temporal has not removed yet would answer as it stood, and whoever waits for a change
                # of it would wait on. Or it went to the execution that another has just continued.
                if error.status is not WorkflowExecutionStatus.CONTINUED_AS_NEW:
                    raise self._missing(workflow_id) from error
                failed = error
            except WorkflowQueryFailedError as error:
                raise Internal(f"{self.kind} {workflow_id} could not answer {name}: {error.message}") from error
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    raise self._missing(workflow_id) from error
                if error.status in _HOPELESS:
                    raise self._silent(workflow_id, name, error) from error
                failed = error
        raise self._silent(workflow_id, name, failed) from failed

    def _missing(self, workflow_id: str) -> NotFound:
        return NotFound(f"{self.kind} {workflow_id} does not exist", **{f"{self.kind}_id": workflow_id})

    def _silent(self, workflow_id: str, name: str, failed: Exception | None) -> Unavailable:
        why = f"{failed.status.name}: {failed.message}" if isinstance(failed, RPCError) else failed
        return Unavailable(
            f"Temporal, or the hosts of its task queue, did not answer for {self.kind} {workflow_id} ({name}): {why}"
        )


async def _tries(patience: float) -> AsyncIterator[None]:
    """Once, and again and again with growing pauses, until so many seconds have gone."""
    clock = asyncio.get_running_loop().time
    until, pause = clock() + patience, _PAUSE
    while True:
        yield
        if clock() >= until:
            return
        await asyncio.sleep(pause)
        pause = min(pause + _PAUSE, _LONGEST_PAUSE)


def thread_calls(client: Client) -> Calls:
    """A reader of a thread has others to turn to, and hears soon that Temporal is not there."""
    return Calls(client, "thread", update_patience=40.0, query_patience=5.0)


def shelf_calls(client: Client) -> Calls:
    """Whoever asks is in the middle of an agent's step, which an error would end."""
    return Calls(client, "shelf", update_patience=20.0, query_patience=20.0)
