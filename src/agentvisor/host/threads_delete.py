"""Removes a thread: the open execution, every one that it continued from, and its objects in external storage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import HistoryEventFilterType
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import Corrupt, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner, check_owner, missing_thread
from agentvisor.host.codec.reading import state_in
from agentvisor.host.external.places import home_of, incarnation_in
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.threads_read import unavailable
from agentvisor.protocol.threads import incarnation_of
from agentvisor.protocol.v1 import thread_pb2

_TIMEOUT = timedelta(seconds=10)


Forget = Callable[[ThreadId, Owner], Awaitable[None]]


async def nothing_beside(_: ThreadId, __: Owner) -> None:
    """Of threads that have nothing beside them."""


async def delete_thread(
    client: Client,
    thread_id: ThreadId,
    external: ExternalStorage | None,
    caller: Owner = EVERYONE,
    forget: Forget = nothing_beside,
) -> None:
    """End the thread, then delete the executions of its chain, the newest last, and its objects.

    So a delete that was cut off can be resumed: the newest execution names the others until the end, and objects are
    found by the thread's id alone, even where another thread has that id now. An attempt that lives elsewhere is fenced
    by the end of the thread, and deletes what it was writing meanwhile. Temporal deletes in its own time (a dev server
    within half a minute). `NotFound` where no thread was open, unless an earlier delete had left objects of it: then
    that one is finished here.
    """
    handle = client.get_workflow_handle(thread_id)
    try:
        current = await handle.describe(rpc_timeout=_TIMEOUT)
        chain = await _chain(client, thread_id, current.run_id)
        owner = Owner(chain[0].owner if chain else "")
        check_owner(thread_id, caller, owner)
        await forget(thread_id, owner)
        # This thread and no later one of the same id, which may have begun while an earlier try was cut off.
        own = client.get_workflow_handle(thread_id, first_execution_run_id=chain[0].first_run_id if chain else None)
        await _ignoring_gone(own.terminate(reason="thread deleted", rpc_timeout=_TIMEOUT))
        last = await _last(client, thread_id, current.run_id)
        if last != current.run_id:  # it had continued as new meanwhile; now it cannot any more
            chain = await _chain(client, thread_id, last)
        for run_id in reversed([one.run_id for one in chain]):
            await _erase(client, thread_id, run_id)
        finished = await _delete_objects(client, thread_id, external)
        if current.status is not WorkflowExecutionStatus.RUNNING and not finished:
            raise missing_thread(thread_id)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise unavailable(thread_id, error) from error
        # Temporal has forgotten the thread; an earlier delete may have left objects of it all the same. Whose they were
        # nobody knows any more: whoever asks, they go, and only the operator is told that there were any.
        if not await _delete_objects(client, thread_id, external) or caller != EVERYONE:
            raise missing_thread(thread_id) from error


async def erase_expired(client: Client, thread_id: ThreadId, execution: str, external: ExternalStorage | None) -> None:
    """Delete an open thread's objects and executions, the one that asks last: it is open until then, and asks again.

    An execution that is deleted is ended by Temporal itself. However late this is done, or again: no later thread of
    the same id loses anything.
    """
    try:
        chain = await _chain(client, thread_id, execution)
        if not chain:
            return
        if external is not None:
            home = home_of(thread_id)
            listed = await external.below(home)
            await external.delete([path for path in listed if incarnation_in(home, path) == chain[0].incarnation])
        for run_id in reversed([one.run_id for one in chain]):
            await _erase(client, thread_id, run_id)
    except RPCError as error:
        raise unavailable(thread_id, error) from error


async def _erase(client: Client, thread_id: ThreadId, run_id: str) -> None:
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


async def _delete_objects(client: Client, thread_id: ThreadId, external: ExternalStorage | None) -> int:
    """Delete the objects of all threads that ever had this id, but for one that lives now; how many they were.

    The list is older than the look at who lives: what it has of another incarnation is of one that has ended.
    """
    if external is None:
        return 0
    home = home_of(thread_id)
    listed = await external.below(home)
    living = await _living(client, thread_id) if listed else None
    doomed = [path for path in listed if incarnation_in(home, path) not in (None, living)]
    await external.delete(doomed)
    return len(doomed)


async def _living(client: Client, thread_id: ThreadId) -> str | None:
    """The incarnation of the thread that has this id now."""
    try:
        current = await client.get_workflow_handle(thread_id).describe(rpc_timeout=_TIMEOUT)
        if current.status is not WorkflowExecutionStatus.RUNNING:
            return None
        chain = await _chain(client, thread_id, current.run_id)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise unavailable(thread_id, error) from error
    if not chain or not chain[0].incarnation:
        raise Unavailable(f"thread {thread_id} began anew while it was deleted: try again")
    return chain[0].incarnation


class _Execution(NamedTuple):
    run_id: str
    first_run_id: str
    incarnation: str
    owner: str


async def _chain(client: Client, thread_id: ThreadId, run_id: str) -> list[_Execution]:
    """The executions of a thread, newest first: each one's first event names the one before it."""
    chain: list[_Execution] = []
    at = run_id
    while at and at not in (one.run_id for one in chain):
        request = GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=thread_id, run_id=at),
            maximum_page_size=1,
        )
        try:
            reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return chain  # deleted by an earlier try, or by Temporal's retention
            raise
        events = reply.history.events
        if not events:
            return [*chain, _Execution(at, at, "", "")]
        started = events[0].workflow_execution_started_event_attributes
        state = await _state(client, thread_id, started)
        incarnation = "" if state is None else incarnation_of(state)
        owner = "" if state is None else state.owner
        chain.append(_Execution(at, started.first_execution_run_id, incarnation, owner))
        at = started.continued_execution_run_id
    return chain


async def _last(client: Client, thread_id: ThreadId, run_id: str) -> str:
    """The newest of the executions that came of this one: each one's last event names the one after it."""
    at = run_id
    while True:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=thread_id, run_id=at),
            history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
        )
        reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
        events = reply.history.events
        following = (
            events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id if events else ""
        )
        if not following:
            return at
        at = following


async def _state(
    client: Client, thread_id: ThreadId, started: WorkflowExecutionStartedEventAttributes
) -> thread_pb2.Thread | None:
    """Of the thread, what an execution began with."""
    try:
        state = await state_in(client, thread_id, started)
    except Corrupt:
        return None  # whose it was nobody can tell: the operator may delete it all the same
    return thread_pb2.Thread.FromString(state) if state else None


async def _ignoring_gone(call: object) -> None:
    try:
        await call  # type: ignore[misc]
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
