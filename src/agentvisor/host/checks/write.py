"""Checks `write` and `clock`: the largest message goes through, and the server's clock is this machine's.

A workflow that nobody runs is started with it, looked at and deleted. The server notes when it began: no API tells the
time otherwise.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from time import time
from uuid import uuid4

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import AgentVisorError, PermissionRefused, Unavailable
from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.checks.limits import largest
from agentvisor.host.config import Config

NAME = "write"
CLOCK = "clock"
QUEUE = "agentvisor-doctor"
"""Polled by nobody."""
_LIFETIME = timedelta(minutes=1)
"""After which the server ends it, should its deletion fail."""
_RPC_TIMEOUT = timedelta(seconds=10)
_A_BIT = 2.0
_TOO_MUCH = 60.0


async def check_write(config: Config, client: Client, *, now: Callable[[], float] = time) -> AsyncIterator[Finding]:
    """Both of them; the clock cannot be told where nothing may be written."""
    setting, size = largest(config.storage)
    name = f"{QUEUE}-{uuid4()}"
    sent = now()
    try:
        handle = await client.start_workflow(
            "AgentVisorDoctor",
            os.urandom(size),  # nothing on the way makes it smaller
            id=name,
            task_queue=QUEUE,
            execution_timeout=_LIFETIME,
            rpc_timeout=_RPC_TIMEOUT,
        )
    except RPCError as error:
        yield _refused(error, setting, size)
        return
    answered = now()
    try:
        began = (await handle.describe(rpc_timeout=_RPC_TIMEOUT)).start_time.timestamp()
        request = DeleteWorkflowExecutionRequest(
            namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=name)
        )
        await client.workflow_service.delete_workflow_execution(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        yield failed(
            NAME,
            f"workflow {name} was started, and could not be seen and deleted: {error.status.name}: {error.message}",
            "it ends by itself in a minute; this host needs the right to write to the namespace",
            _class_of(error),
        )
        return
    took = (answered - sent) * 1000
    yield ok(NAME, f"a workflow with {size} bytes ({setting}) was started in {took:.0f} ms, seen and deleted")
    yield _clock(began, sent, answered)


def _clock(began: float, sent: float, answered: float) -> Finding:
    """The server noted the time between the two of ours."""
    off = max(sent - began, began - answered, 0.0)
    behind = "behind" if began < sent else "ahead of"
    if off > _TOO_MUCH:
        seen = f"Temporal's clock is {off:.0f} s {behind} this machine's"
        return failed(CLOCK, seen, "keys, tokens, certificates and deadlines go by it: set both by NTP")
    if off > _A_BIT:
        seen = f"Temporal's clock is {off:.1f} s {behind} this machine's"
        return warning(CLOCK, seen, "times in the API and deadlines are off by it: set both by NTP")
    return ok(CLOCK, f"Temporal's clock and this machine's differ by less than {off + answered - sent:.2f} s")


def _refused(error: RPCError, setting: str, size: int) -> Finding:
    said = f"{error.status.name}: {error.message}"
    if error.status in (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.RESOURCE_EXHAUSTED):
        return failed(
            NAME,
            f"a workflow with {size} bytes was refused ({said})",
            f"raise the server's limit.blobSize.error and what proxies before it take (a gRPC message of 4 MiB), or "
            f"lower {setting}",
        )
    return failed(
        NAME,
        f"a workflow could not be started ({said})",
        "this host needs the right to write to the namespace",
        _class_of(error),
    )


def _class_of(error: RPCError) -> type[AgentVisorError]:
    return PermissionRefused if error.status is RPCStatusCode.PERMISSION_DENIED else Unavailable
