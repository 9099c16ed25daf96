"""Why a workflow does not answer: what it began with cannot be read here, and then its tasks cannot be done here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TypeVar
from weakref import WeakKeyDictionary

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor.core.errors import AgentVisorError
from agentvisor.host.codec.client import of_workflow
from agentvisor.host.codec.looks import Looks
from agentvisor.host.codec.refused import Refused

_TIMEOUT = timedelta(seconds=10)
_SOON = 1.0
"""Seconds after which a workflow that is well has answered."""

Result = TypeVar("Result")

_looks: WeakKeyDictionary[Client, Looks] = WeakKeyDictionary()
"""One for all that read through a client: each request has a reader of its own."""


async def state_in(client: Client, workflow_id: str, started: WorkflowExecutionStartedEventAttributes) -> bytes:
    """What an execution began with; empty where it began with nothing. `Sealed`, `Corrupt`."""
    try:
        argument: list[object] = await of_workflow(client, workflow_id).decode(started.input.payloads, [bytes])
    except AgentVisorError:
        raise
    except Exception as error:  # somebody has started it by hand: what a converter raises is any error
        raise Refused.DAMAGED.corrupt(
            f"{workflow_id} has begun with something that is no state of AgentVisor's: delete it ({error})"
        ) from error
    state = argument[0] if argument else b""
    return state if isinstance(state, bytes) else b""


async def answered(client: Client, workflow_id: str, call: Awaitable[Result]) -> Result:
    """What a workflow answers to a query or an update; where that takes long, why it cannot: see `check_readable`.

    What is slow may come all the same: it does not wait for the check.
    """
    async with AsyncExitStack() as stack:
        asked = asyncio.ensure_future(call)
        stack.push_async_callback(_ended, asked)
        await asyncio.wait([asked], timeout=_SOON)
        if not asked.done():
            check = asyncio.ensure_future(check_readable(client, workflow_id))
            stack.push_async_callback(_ended, check)
            await asyncio.wait((asked, check), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                await check
        return await asked


async def _ended(task: asyncio.Future[Result]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def check_readable(client: Client, workflow_id: str) -> None:
    """Asked when a workflow did not answer: `Sealed` or `Corrupt` where this host could not do its tasks either.

    It reads the execution's first event, which may have megabytes: no oftener than `Looks` has it.
    """
    await _looks.setdefault(client, Looks()).at(workflow_id, lambda: _read_beginning(client, workflow_id))


async def _read_beginning(client: Client, workflow_id: str) -> None:
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id), maximum_page_size=1
    )
    try:
        reply = await client.workflow_service.get_workflow_execution_history(request, retry=False, timeout=_TIMEOUT)
    except RPCError:
        return  # whatever that is, it is said by what did not answer
    if reply.history.events:
        await state_in(client, workflow_id, reply.history.events[0].workflow_execution_started_event_attributes)
