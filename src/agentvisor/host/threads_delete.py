"""Removes a thread from Temporal: the open execution and every one that it continued from."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.host.threads_read import unavailable

_TIMEOUT = timedelta(seconds=10)


async def delete_thread(client: Client, thread_id: ThreadId) -> None:
    """End the thread, then delete the executions of its chain, the newest last, so that a crash can be resumed.

    Temporal deletes in its own time (a dev server within half a minute). `NotFound` where no thread was open, also
    where an earlier delete had ended it: what that one left is deleted all the same.
    """
    handle = client.get_workflow_handle(thread_id)
    try:
        current = await handle.describe(rpc_timeout=_TIMEOUT)
        chain = await _chain(client, thread_id, current.run_id)
        await _ignoring_gone(handle.terminate(reason="thread deleted", rpc_timeout=_TIMEOUT))
        for run_id in reversed(chain):
            await _ignoring_gone(
                client.workflow_service.delete_workflow_execution(
                    DeleteWorkflowExecutionRequest(
                        namespace=client.namespace,
                        workflow_execution=WorkflowExecution(workflow_id=thread_id, run_id=run_id),
                    ),
                    retry=True,
                    timeout=_TIMEOUT,
                )
            )
        if current.status is not WorkflowExecutionStatus.RUNNING:
            raise NotFound(f"thread {thread_id} does not exist", thread_id=thread_id)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound(f"thread {thread_id} does not exist", thread_id=thread_id) from error
        raise unavailable(thread_id, error) from error


async def _chain(client: Client, thread_id: ThreadId, run_id: str) -> list[str]:
    """The executions of a thread, newest first: each one's first event names the one before it."""
    chain: list[str] = []
    at = run_id
    while at and at not in chain:
        chain.append(at)
        request = GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=thread_id, run_id=at),
            maximum_page_size=1,
        )
        try:
            reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return chain[:-1]  # deleted by an earlier try, or by Temporal's retention
            raise
        events = reply.history.events
        at = events[0].workflow_execution_started_event_attributes.continued_execution_run_id if events else ""
    return chain


async def _ignoring_gone(call: object) -> None:
    try:
        await call  # type: ignore[misc]
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
