"""Where the other hosts of this deployment are: Temporal alone says so, by the names under which they poll its queues.

Each host polls a queue of its own, `QUEUE:HOST_ID`, as `HOST_ID@ADDRESS`. So an address is believed only of somebody
whom Temporal lets poll this deployment's queues, and never because a client, a run or an agent named it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from urllib.parse import urlsplit

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

_RPC_TIMEOUT = timedelta(seconds=5)
_KNOWN_FOR = 5.0
"""Seconds for which the list of hosts is not asked for again."""


class Peers:
    """The hosts that poll one deployment's queues."""

    def __init__(
        self, client: Client, task_queue: str, host_id: str, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self.host_id = host_id
        self._client = client
        self._task_queue = task_queue
        self._clock = clock
        self._addresses: dict[str, str] = {}
        self._others: tuple[float, bool] = (-_KNOWN_FOR, False)
        self._asking = asyncio.Lock()

    async def address(self, host_id: str) -> str | None:
        """`host:port` of another host's HTTP end; None where Temporal knows of none, or it takes no questions."""
        if host_id not in self._addresses:
            for identity in await self._pollers(queue_of(self._task_queue, host_id), _ACTIVITIES):
                name, _, address = identity.rpartition("@")
                if name == host_id and _is_address(address):
                    self._addresses[host_id] = address
        return self._addresses.get(host_id)

    async def any_other(self) -> bool:
        """Whether this host may not be the only one: somebody else has polled the deployment's queue lately."""
        async with self._asking:
            asked_at, others = self._others
            if self._clock() - asked_at >= _KNOWN_FOR:
                # For threads, for which a host asks even while it has no room for another run.
                found = await self._pollers(self._task_queue, _WORKFLOWS)
                others = any(one.rpartition("@")[0] != self.host_id for one in found)
                self._others = (self._clock(), others)
            return others

    async def _pollers(self, queue: str, kind: TaskQueueType.ValueType) -> list[str]:
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
        try:
            reply = await self._client.workflow_service.describe_task_queue(request, timeout=_RPC_TIMEOUT)
        except RPCError:
            return []  # asked again
        return [poller.identity for poller in reply.pollers]


def queue_of(task_queue: str, host_id: str) -> str:
    """The queue that only this host polls."""
    return f"{task_queue}:{host_id}"


def identity_of(host_id: str, address: str | None) -> str:
    """Under which name a host polls; without an address, no other host may ask it."""
    return f"{host_id}@{address or ''}"


def address_of(listens_on: str, port: int, temporal: str | None) -> str:
    """Where other hosts reach this one, when it listens there: a wildcard is the machine's address towards Temporal."""
    host = listens_on
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - what is meant by it, not listened on
        host = _own_address(temporal or "localhost:7233")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _own_address(towards: str) -> str:
    """The address that packets to there would carry; nothing is sent."""
    target = urlsplit(f"//{towards}")
    try:
        places = socket.getaddrinfo(target.hostname, target.port or 7233, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, place = places[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except (OSError, IndexError):
        return socket.gethostname()


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname and parts.port) and parts.netloc == text and "@" not in text
    except ValueError:
        return False


_ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
_WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
