"""Moves idle threads to this version: each continues as new, so that its history no longer needs older rules (B16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta
from enum import Enum

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import STATE_VERSION
from agentvisor.host.temporal_client import connect
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.v1 import thread_pb2

_TIMEOUT = timedelta(seconds=10)


class Migration(Enum):
    """What became of a thread; the value is what the command says."""

    ASKED = "asked: continues on this version as soon as it is idle"
    PRESENT = "on this version already"
    NEWER = "of a newer version: upgrade this program"
    GONE = "deleted meanwhile"
    SILENT = "no host answered for it: is one running?"


async def migrate_all(address: str | None, namespace: str, *, everything: bool) -> Counter[Migration]:
    """Ask every thread of an older version, or of any, to continue as new; those with a live run do it afterwards."""
    client = await connect(address, namespace)
    outcomes = Counter[Migration]()
    async for thread_id, run_id in _threads(client):
        outcomes[await _migrate(client, thread_id, run_id, everything=everything)] += 1
    return outcomes


async def _threads(client: Client) -> AsyncGenerator[tuple[ThreadId, str]]:
    async for one in client.list_workflows(f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"):
        yield ThreadId(one.id), one.run_id


async def _migrate(client: Client, thread_id: ThreadId, run_id: str, *, everything: bool) -> Migration:
    try:
        version = await _version(client, thread_id, run_id)
        if version > STATE_VERSION:
            return Migration.NEWER
        if version == STATE_VERSION and not everything:
            return Migration.PRESENT
        handle = client.get_workflow_handle(thread_id)
        await handle.execute_update(  # pyright: ignore[reportUnknownMemberType] - Temporal's signature
            "compact", b"", id=f"migrate-{STATE_VERSION}-{run_id}", result_type=bytes, rpc_timeout=_TIMEOUT
        )
    except RPCError as error:
        return Migration.GONE if error.status is RPCStatusCode.NOT_FOUND else Migration.SILENT
    except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
        return Migration.SILENT
    return Migration.ASKED


async def _version(client: Client, thread_id: ThreadId, run_id: str) -> int:
    """Of the state that a thread's execution began with: the argument in its first event."""
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=thread_id, run_id=run_id),
        maximum_page_size=1,
    )
    reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
    started = reply.history.events[0].workflow_execution_started_event_attributes
    argument: list[object] = await client.data_converter.decode(started.input.payloads, [bytes])
    state = argument[0] if argument else b""
    return thread_pb2.Thread.FromString(state).version if isinstance(state, bytes) else 0
