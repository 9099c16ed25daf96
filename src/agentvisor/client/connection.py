"""From which process we speak, and so how: the one place of the SDK that reads the environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentvisor.client.find_host import find_host
from agentvisor.client.known import Known
from agentvisor.client.socketpair import CHANNEL_FD, Channel, own_channel
from agentvisor.client.transport import Transport
from agentvisor.client.write_order import WriteOrder
from agentvisor.core import ids
from agentvisor.core.errors import InvalidInput, PermissionRefused
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1.guest_pb2 import AgentTask

THREAD_ID = "AGENTVISOR_THREAD_ID"
"""The thread that this process works on: set by AgentVisor in every agent process."""

RUN_ID = "AGENTVISOR_RUN_ID"
"""The run that this process is: set by AgentVisor in every agent process."""

ENDPOINT = "AGENTVISOR_ENDPOINT"
"""Outside a guest: the host's HTTP address."""

API_KEY = "AGENTVISOR_API_KEY"
"""Outside a guest: the key that the host asks for."""

DEFAULT_ENDPOINT = "http://127.0.0.1:8090"


@dataclass(frozen=True, slots=True)
class Connection:
    """A way to the host, and what all that use it share."""

    transport: Transport
    limits: Limits = field(default_factory=Limits)
    known: Known = field(default_factory=Known)
    order: WriteOrder = field(default_factory=WriteOrder)

    @classmethod
    def over(cls, transport: Transport) -> Connection:
        """A connection of its own, that shares nothing."""
        return cls(transport, limits_of(transport.task) if isinstance(transport, Channel) else Limits())


def own_thread(environment: Mapping[str, str] = os.environ) -> ids.ThreadId | None:
    """The thread that this process is bound to; None outside a guest."""
    text = environment.get(THREAD_ID)
    return ids.thread_id(text) if text else None


def own_run(environment: Mapping[str, str] = os.environ) -> str:
    """The run that this process is; empty outside a guest."""
    return environment.get(RUN_ID, "")


def thread_of(wanted: str | None) -> ids.ThreadId:
    """The thread of a call: the run's own inside a guest, and there no other; outside, the one that is named."""
    own = own_thread()
    if own is not None:
        if wanted not in {None, own}:
            raise PermissionRefused(
                f"this agent runs on thread {own} and may not use thread {str(wanted)[:80]!r}: leave thread_id out",
                thread_id=own,
            )
        return own
    if not wanted:
        raise InvalidInput("no thread id: outside an AgentVisor run, pass thread_id=...", field="thread_id")
    return ids.thread_id(wanted)


def connect(endpoint: str | None = None, api_key: str | None = None) -> Connection:
    """The connection of this process: its channel inside a guest, gRPC outside.

    Made once and shared. Raises `Unavailable` where no host answers; the next call tries again.
    """
    with _lock:
        if endpoint is None and CHANNEL_FD in os.environ:
            where = (CHANNEL_FD, os.environ[CHANNEL_FD], os.getpid())
            if where not in _connections:
                _connections[where] = Connection.over(own_channel())
        else:
            endpoint = endpoint or os.environ.get(ENDPOINT) or DEFAULT_ENDPOINT
            api_key = api_key or os.environ.get(API_KEY)
            where = (endpoint, api_key, os.getpid())
            if where not in _connections:
                _connections[where] = _outside(endpoint, api_key)
        return _connections[where]


_lock = threading.Lock()
_connections: dict[tuple[str | int | None, ...], Connection] = {}


def _outside(endpoint: str, api_key: str | None) -> Connection:
    # Never in a guest: gRPC in a forked process hangs, and importing it costs 80 ms.
    from agentvisor.client.grpc_transport import GrpcTransport

    found, default = find_host(endpoint, api_key), Limits()
    limits = Limits(
        max_value_bytes=found.max_value or default.max_value_bytes,
        max_stored_bytes=found.max_stored_value or default.max_stored_bytes,
    )
    return Connection(GrpcTransport.connect(endpoint, api_key), limits)


def limits_of(task: AgentTask) -> Limits:
    """The limits that the host gave with the task; where it gave none, the defaults."""
    default = Limits()
    return Limits(
        patch_chain=task.patch_chain if task.HasField("patch_chain") else default.patch_chain,
        max_value_bytes=task.max_value_bytes or default.max_value_bytes,
        max_stored_bytes=task.max_inline_value_bytes or default.max_stored_bytes,
    )
