"""Which keys something still needs: the states that Temporal has, what crons start with, objects of external storage.

Nothing is decrypted: each names its key. So it is told also of keys that are not here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client, ScheduleActionStartWorkflow
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import StorageUnavailable, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.host.codec.objects import HEAD, SUFFIX, key_named
from agentvisor.host.codec.payloads import key_of
from agentvisor.host.codec.places import CRON_PREFIX
from agentvisor.host.external.backend import Backend, first_line
from agentvisor.host.external.places import home_of
from agentvisor.host.workflow.shelf import SHELF_WORKFLOW
from agentvisor.host.workflow.thread import WORKFLOW

PLAIN = ""
"""In the place of a key's id: of what is not encrypted."""
DAMAGED = "?"
"""Of an object that names no key."""

_TIMEOUT = timedelta(seconds=10)
_AT_A_TIME = 16


@dataclass(slots=True)
class Uses:
    """How much needs each key, by its id."""

    threads: Counter[str] = field(default_factory=Counter[str])
    """Of threads and shelves: what their executions have begun with."""
    crons: Counter[str] = field(default_factory=Counter[str])
    objects: Counter[str] = field(default_factory=Counter[str])
    """Of the threads that there are; what is left of deleted ones goes by itself."""

    @property
    def keys(self) -> list[str]:
        return sorted({*self.threads, *self.crons, *self.objects})


async def keys_used(client: Client, backend: Backend | None, done: Callable[[int], None] = lambda _: None) -> Uses:
    """Look at all of a namespace. `done` is told how many more workflows were looked at. `Unavailable`."""
    uses = Uses()
    try:
        for kind in (WORKFLOW, SHELF_WORKFLOW):
            async for one in client.list_workflows(f"WorkflowType = '{kind}' AND ExecutionStatus = 'Running'"):
                uses.threads.update({*_keys(await _beginning(client, one.id, one.run_id))})
                if backend is not None and kind == WORKFLOW:
                    uses.objects.update(await _of_objects(backend, ThreadId(one.id)))
                done(1)
        async for schedule in await client.list_schedules():
            if schedule.id.startswith(CRON_PREFIX):
                uses.crons.update({*_keys(await _given(client, schedule.id))})
    except RPCError as error:
        raise Unavailable(f"Temporal did not say what it has ({error.status.name}): {error.message}") from error
    return uses


def _keys(payloads: Iterable[Payload]) -> Iterable[str]:
    return (key_of(one) or PLAIN for one in payloads)


async def _beginning(client: Client, workflow_id: str, run_id: str) -> Sequence[Payload]:
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        maximum_page_size=1,
    )
    try:
        reply = await client.workflow_service.get_workflow_execution_history(request, retry=True, timeout=_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ()  # deleted meanwhile
        raise
    return reply.history.events[0].workflow_execution_started_event_attributes.input.payloads


async def _given(client: Client, schedule_id: str) -> Sequence[Payload]:
    try:
        found = await client.get_schedule_handle(schedule_id).describe(rpc_timeout=_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ()
        raise
    action = found.schedule.action
    return cast("Sequence[Payload]", action.args) if isinstance(action, ScheduleActionStartWorkflow) else ()


async def _of_objects(backend: Backend, thread_id: ThreadId) -> Counter[str]:
    gate, home = asyncio.Semaphore(_AT_A_TIME), home_of(thread_id)

    async def key(path: str) -> str | None:
        if not path.endswith(SUFFIX):
            return PLAIN
        async with gate:
            try:
                return key_named(await backend.get(path, 0, HEAD)) or DAMAGED
            except FileNotFoundError:
                return None  # its value has gone meanwhile

    try:
        keys = await asyncio.gather(*[key(path) async for path in backend.list(home)])
    except Exception as error:
        raise StorageUnavailable(f"objects of thread {thread_id} cannot be looked at: {first_line(error)}") from error
    return Counter(one for one in keys if one is not None)
