"""The calls to Temporal that a journal makes, each with an outcome that cannot be misread: done, gone or unknown."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import NamedTuple
from uuid import uuid4

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import (
    RecordActivityTaskHeartbeatRequest,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
    SignalWorkflowExecutionRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.core.ids import AttemptId, ThreadId
from agentvisor.host.codec.client import encrypts, of_workflow
from agentvisor.protocol.v1 import thread_pb2


class Outcome(Enum):
    """What is known of a call."""

    DONE = "done"
    GONE = "gone"
    """Temporal says that the attempt (or the thread) is no more; two texts exist, so only the status is looked at."""
    UNKNOWN = "unknown"
    """It may have had its effect, may have it later, or never."""


class Beat(NamedTuple):
    outcome: Outcome
    cancel_requested: bool = False


_TIMEOUT = timedelta(seconds=5)
_TIMEOUT_LEAST = timedelta(seconds=0.5)


class JournalCalls:
    """Temporal, as one thread's journal needs it. OWNRETRY: nothing here is retried by the SDK."""

    def __init__(self, client: Client, thread_id: ThreadId, *, heartbeat_timeout: timedelta) -> None:
        self._client = client
        self._thread_id = thread_id
        self._converter = of_workflow(client, thread_id)
        # An answer that is lost must leave time for another heartbeat.
        self._timeout = max(_TIMEOUT_LEAST, min(_TIMEOUT, heartbeat_timeout / 3))

    async def heartbeat(self, token: bytes, log: bytes) -> Beat:
        """Write the log through to Temporal's database; not throttled, no history event."""
        request = RecordActivityTaskHeartbeatRequest(
            task_token=token,
            details=await self._payloads(log),
            identity=self._client.identity,
            namespace=self._client.namespace,
        )
        try:
            reply = await self._client.workflow_service.record_activity_task_heartbeat(
                request, retry=False, timeout=self._timeout
            )
        except RPCError as error:
            return Beat(_outcome(error))
        return Beat(Outcome.DONE, reply.cancel_requested)

    async def fold(self, log: bytes) -> Outcome:
        """Send a stretch of the log to the workflow's state: one signal."""
        request = SignalWorkflowExecutionRequest(
            namespace=self._client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=self._thread_id),
            signal_name="fold",
            input=await self._payloads(log),
            identity=self._client.identity,
            request_id=str(uuid4()),
        )
        try:
            await self._client.workflow_service.signal_workflow_execution(request, retry=False, timeout=self._timeout)
        except RPCError as error:
            return _outcome(error)
        return Outcome.DONE

    async def complete(self, token: bytes, close: bytes) -> Outcome:
        request = RespondActivityTaskCompletedRequest(
            task_token=token, result=await self._payloads(close), identity=self._client.identity,
            namespace=self._client.namespace,
        )  # fmt: skip
        return await self._respond(self._client.workflow_service.respond_activity_task_completed, request)

    async def fail(self, token: bytes, close: bytes, error_type: str, message: str) -> Outcome:
        """As a failed activity, so that Temporal's UI shows it as one; the report travels in the details."""
        # The name of an exception is the agent's own as well, and nothing encrypts it here; the report has it.
        shown = "encrypted" if encrypts(self._client) else error_type
        failure = Failure()
        raised = ApplicationError(message, close, type=shown, non_retryable=True)
        await self._converter.encode_failure(raised, failure)
        failure.source = "AgentVisor"
        request = RespondActivityTaskFailedRequest(
            task_token=token, failure=failure, identity=self._client.identity, namespace=self._client.namespace
        )
        return await self._respond(self._client.workflow_service.respond_activity_task_failed, request)

    async def report_cancellation(self, token: bytes, close: bytes) -> Outcome:
        request = RespondActivityTaskCanceledRequest(
            task_token=token, details=await self._payloads(close), identity=self._client.identity,
            namespace=self._client.namespace,
        )  # fmt: skip
        return await self._respond(self._client.workflow_service.respond_activity_task_canceled, request)

    async def read_attempt(self, attempt: AttemptId) -> thread_pb2.ReadAttemptReply | None:
        """Ask the workflow what it knows of an attempt; None while it cannot be asked."""
        asked = thread_pb2.ReadAttempt(run_id=attempt.run_id, attempt=attempt.attempt).SerializeToString()
        handle = self._client.get_workflow_handle(self._thread_id)
        try:
            reply: bytes = await handle.query(
                "read_attempt",
                asked,
                result_type=bytes,
                rpc_timeout=self._timeout,
                reject_condition=QueryRejectCondition.NOT_OPEN,
            )
        except WorkflowQueryRejectedError as error:
            # A question that was under way while the thread continued as new: its next execution knows.
            if error.status is WorkflowExecutionStatus.CONTINUED_AS_NEW:
                return None
            return thread_pb2.ReadAttemptReply(current=False)
        except (WorkflowQueryFailedError, Sealed, Corrupt):
            return None
        except RPCError as error:
            return thread_pb2.ReadAttemptReply(current=False) if _outcome(error) is Outcome.GONE else None
        return thread_pb2.ReadAttemptReply.FromString(reply)

    async def _respond(self, call: object, request: Message) -> Outcome:
        try:
            await call(request, retry=False, timeout=self._timeout)  # type: ignore[operator]
        except RPCError as error:
            return _outcome(error)
        return Outcome.DONE

    async def _payloads(self, data: bytes) -> Payloads:
        return Payloads(payloads=await self._converter.encode([data]))


def _outcome(error: RPCError) -> Outcome:
    return Outcome.GONE if error.status == RPCStatusCode.NOT_FOUND else Outcome.UNKNOWN
