"""A thread as it is now: the workflow's state with the live attempt's log laid over it.

DESCFIRST: the pending heartbeat is read first, then the state; the other order misses acknowledged operations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import AttemptId, BlobKey, RunId, ThreadId
from agentvisor.core.owners import EVERYONE, Owner, check_owner, missing_thread
from agentvisor.core.records import Blob, DeleteForRuns, Prune
from agentvisor.core.thread import Thread
from agentvisor.host.codec.client import of_workflow
from agentvisor.host.external.attempt_objects import Outlines
from agentvisor.host.temporal_calls import thread_calls
from agentvisor.protocol.convert import blob_from_message, operations_from
from agentvisor.protocol.reads import Place, join_inputs, lay_over, place
from agentvisor.protocol.threads import thread_from_message
from agentvisor.protocol.v1 import journal_pb2, run_pb2, thread_pb2

_TRIES = 20
_RPC_TIMEOUT = timedelta(seconds=10)
_PAUSE = 0.02

NO_RUN = "-"
"""Names no run: every run comes without its input and output."""


class Listed(NamedTuple):
    """Some checkpoints of a list."""

    thread: Thread
    last: Place | None
    """How far down the list they are all here; None: to its end."""


class ThreadReader:
    """Reads of one Temporal namespace for one caller, to whom other owners' threads do not exist; holds nothing.

    What a thread answers says whose it is: a worker that is older than owners says nothing, and its answer is nobody's.
    """

    def __init__(self, client: Client, caller: Owner = EVERYONE) -> None:
        self._client = client
        self._calls = thread_calls(client)
        self._caller = caller

    async def read(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread:
        """The thread with what was asked for, every acknowledged operation included. `NotFound`, `Unavailable`."""
        return (await self._overlaid(thread_id, asked)).thread

    async def page(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Listed:
        """The page of a list that `asked` names, every acknowledged operation included."""
        found = await self._overlaid(thread_id, asked)
        if not found.pruned:
            return Listed(found.thread, found.last)
        # What was logged removes checkpoints by looking at all of them: a part does not tell which.
        whole = thread_pb2.ReadThread()
        whole.CopyFrom(asked)
        whole.ClearField("page")
        return Listed(await self.read(thread_id, whole), None)

    async def _overlaid(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> _Overlaid:
        for attempt in range(_TRIES):
            log = await self._pending_log(thread_id)
            thread = await self.state(thread_id, asked)
            here = [place(one) for one in thread.store.all_checkpoints()] if asked.page.most else []
            last = min(here) if here and len(here) == asked.page.most else None
            if log is None or lay_over(thread, log):
                return _Overlaid(thread, last, pruned=log is not None and _prunes(log))
            await asyncio.sleep(_PAUSE * min(attempt, 5))
        raise _too_fast(thread_id)

    async def state(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread:
        """The workflow's own state, all pages of it."""
        for _ in range(_TRIES):
            thread = await self._pages(thread_id, asked)
            if thread is not None:
                return thread
        raise Unavailable(f"thread {thread_id} changes too fast to be read in pages: try again")

    async def _pages(self, thread_id: ThreadId, asked: thread_pb2.ReadThread) -> Thread | None:
        """None where the state changed between two pages."""
        whole: thread_pb2.Thread | None = None
        page = thread_pb2.ReadThread()
        page.CopyFrom(asked)
        page.inputs_apart = True
        revision = 0
        while True:
            answer = await self._query(thread_id, "read_thread", page.SerializeToString())
            reply = thread_pb2.ReadThreadReply.FromString(answer)
            check_owner(thread_id, self._caller, reply.thread.owner)
            if whole is None:
                whole, revision = reply.thread, reply.revision
            elif reply.revision != revision:
                return None
            else:
                whole.store.MergeFrom(reply.thread.store)
                whole.runs.MergeFrom(reply.thread.runs)
            if not reply.cursor:
                break
            page.cursor = reply.cursor
        runs = join_inputs(whole.runs)
        del whole.runs[:]
        whole.runs.extend(runs)
        if asked.runs == thread_pb2.RUNS_ASKED_WHOLE and not reply.every_run:
            runs = await self._one_by_one(thread_id, [run.spec.run_id for run in whole.runs], revision)
            if runs is None:
                return None
            del whole.runs[:]
            whole.runs.extend(runs)
        return thread_from_message(whole)

    async def _one_by_one(self, thread_id: ThreadId, named: list[str], revision: int) -> list[run_pb2.Run] | None:
        """Whole runs of a worker older than the question for every one; `Unavailable` where some are missing."""
        storage = thread_pb2.ReadStorageReply.FromString(
            await self._query(thread_id, "read_storage", thread_pb2.ReadStorage().SerializeToString())
        )
        if storage.runs > len(named):
            raise Unavailable(
                f"thread {thread_id} is with a host of an older version, which tells {len(named)} of its "
                f"{storage.runs} runs: try again once all hosts are of this version, and after `agentvisor migrate`",
                thread_id=thread_id,
            )
        found = list[run_pb2.Run]()
        for run_id in named:
            asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=run_id)
            answer = await self._query(thread_id, "read_thread", asked.SerializeToString())
            reply = thread_pb2.ReadThreadReply.FromString(answer)
            check_owner(thread_id, self._caller, reply.thread.owner)
            if reply.revision != revision:
                return None
            found += [run for run in reply.thread.runs if run.spec.run_id == run_id]
        return found

    async def blobs(
        self,
        thread_id: ThreadId,
        keys: Iterable[BlobKey],
        *,
        have: Iterable[BlobKey] = (),
        enough: int | None = None,
    ) -> list[Blob]:
        """Stored blobs with all that they are based on, bases first, but for what the caller has.

        Unknown keys are left out; and with `enough`, what comes after so many bytes.
        """
        wanted, had = list(keys), list(have)
        found: dict[BlobKey, Blob] = {}
        size = 0
        while True:
            asked = thread_pb2.ReadBlobs(keys=wanted, have=[*had, *found])
            reply = thread_pb2.ReadBlobsReply.FromString(
                await self._query(thread_id, "read_blobs", asked.SerializeToString())
            )
            check_owner(thread_id, self._caller, reply.owner)
            for message in reply.blobs:
                blob = blob_from_message(message)
                found[blob.key] = blob
                size += blob.stored_bytes
            if not reply.more or (enough is not None and size > enough):
                return list(found.values())

    async def outlines(self, thread_id: ThreadId) -> Outlines:
        """What the workflow's state holds of large values and of those in external storage."""
        found: dict[BlobKey, Blob] = {}
        size = 0
        while True:
            asked = thread_pb2.ReadBlobs(have=list(found), outlines=True)
            reply = thread_pb2.ReadBlobsReply.FromString(
                await self._query(thread_id, "read_blobs", asked.SerializeToString())
            )
            check_owner(thread_id, self._caller, reply.owner)
            found.update((blob.key, blob) for blob in map(blob_from_message, reply.blobs))
            size = size or reply.stored_bytes
            if not reply.more:
                active = reply.active
                current = AttemptId(RunId(active.run_id), active.attempt) if reply.HasField("active") else None
                return Outlines(reply.incarnation, current, active.applied_seq, size, list(found.values()))

    async def storage(self, thread_id: ThreadId) -> thread_pb2.ReadStorageReply:
        """Sizes of a thread, and of its current execution's history."""
        for attempt in range(_TRIES):
            description = await self.describe(thread_id)
            log = await self._log_in(description)
            asked = thread_pb2.ReadStorage(log=b"" if log is None else log.SerializeToString())
            answer = await self._query(thread_id, "read_storage", asked.SerializeToString())
            reply = thread_pb2.ReadStorageReply.FromString(answer)
            check_owner(thread_id, self._caller, reply.owner)
            if not reply.gap:
                reply.history_events = description.workflow_execution_info.history_length
                reply.history_bytes = description.workflow_execution_info.history_size_bytes
                return reply
            await asyncio.sleep(_PAUSE * min(attempt, 5))
        raise _too_fast(thread_id)

    async def _query(self, thread_id: ThreadId, name: str, argument: bytes) -> bytes:
        return await self._calls.ask(thread_id, name, argument)

    async def _pending_log(self, thread_id: ThreadId) -> journal_pb2.Log | None:
        return await self._log_in(await self.describe(thread_id))

    async def _log_in(self, description: DescribeWorkflowExecutionResponse) -> journal_pb2.Log | None:
        for pending in description.pending_activities:
            if not pending.heartbeat_details.payloads:
                continue
            converter = of_workflow(self._client, description.workflow_execution_info.execution.workflow_id)
            details: list[object] = await converter.decode(pending.heartbeat_details.payloads, [bytes])
            if details and isinstance(details[0], bytes):
                try:
                    return journal_pb2.Log.FromString(details[0])
                except DecodeError:
                    return None
        return None

    async def describe(self, thread_id: ThreadId) -> DescribeWorkflowExecutionResponse:
        """The open execution of a thread; `NotFound` where there is none."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=thread_id)
        )
        try:
            description = await self._client.workflow_service.describe_workflow_execution(
                request, retry=True, timeout=_RPC_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise missing_thread(thread_id) from error
            raise unavailable(thread_id, error) from error
        if description.workflow_execution_info.status != WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING:
            raise missing_thread(thread_id)
        return description


class _Overlaid(NamedTuple):
    """A thread with the live log laid over it, and what that was."""

    thread: Thread
    last: Place | None
    pruned: bool


def _prunes(log: journal_pb2.Log) -> bool:
    return any(isinstance(one, Prune | DeleteForRuns) for one in operations_from(log.entries))


def _too_fast(thread_id: ThreadId) -> Unavailable:
    return Unavailable(f"thread {thread_id} is being written too fast to be read consistently: try again")


def unavailable(thread_id: ThreadId, error: RPCError) -> Unavailable:
    return Unavailable(f"Temporal did not answer for thread {thread_id} ({error.status.name}): {error.message}")
