"""Check `hosts`: which hosts take this deployment's threads now, and whether they are of this version."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import httpx
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from agentvisor import __version__
from agentvisor.host.checks.finding import Finding, ok, warning
from agentvisor.host.config import Config

NAME = "hosts"
_SECONDS = 3.0
_RPC_TIMEOUT = timedelta(seconds=5)
_MOST = 16
"""Hosts that are asked for their version."""


async def check_hosts(config: Config, client: Client) -> Finding:
    """By who polls the task queue, which Temporal remembers for five minutes."""
    queue = config.temporal.task_queue
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    try:
        reply = await client.workflow_service.describe_task_queue(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        return warning(NAME, f"task queue {queue!r}: {error.status.name}: {error.message}", "nobody knows who polls it")
    hosts = {poller.identity for poller in reply.pollers}
    if not hosts:
        return ok(NAME, f"none has polled task queue {queue!r} in the last five minutes")
    addresses = sorted({one.rpartition("@")[2] for one in hosts})
    versions = await asyncio.gather(*(_version(address) for address in addresses[:_MOST]))
    seen = ", ".join(f"{address} ({version})" for address, version in zip(addresses, versions, strict=False))
    if others := {one for one in versions if one not in (__version__, _UNKNOWN)}:
        return warning(
            NAME,
            f"{len(addresses)} in the last five minutes, of task queue {queue!r}: {seen}; this is {__version__}",
            f"{', '.join(sorted(others))} and {__version__} work side by side while a deployment rolls; not for long",
        )
    return ok(NAME, f"{len(addresses)} in the last five minutes, of task queue {queue!r}: {seen}")


_UNKNOWN = "does not answer now, or not without a key"


async def _version(address: str) -> str:
    # No key of ours is shown: what Temporal names is asked what anybody may ask.
    try:
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
            answer = cast("object", (await client.get(f"http://{address}/info")).json())
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return _UNKNOWN
    return str(cast("dict[str, object]", answer).get("agentvisor", _UNKNOWN)) if isinstance(answer, dict) else _UNKNOWN
