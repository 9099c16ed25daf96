"""What every attempt on a host shares: its guests, its events, its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agentvisor.core.ids import RunId, ThreadId
from agentvisor.host.door import StoreLimits
from agentvisor.host.drain import Drain
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.guests import Guests
from agentvisor.host.run_events import RunEvents
from agentvisor.host.streams import RunStreams
from agentvisor.host.threads_read import ThreadReader
from agentvisor.host.tracing.spans import NO_TRACING, Tracing
from agentvisor.protocol.v1 import items_pb2


@dataclass(frozen=True, slots=True)
class AttemptServices:
    """Times are seconds."""

    reader: ThreadReader
    guests: Guests
    streams: RunStreams
    events: RunEvents
    limits: StoreLimits
    stop_grace: float
    session_idle: float
    own_queue: str
    attempt_ended: Callable[[RunId], None]
    attempt_began: Callable[[ThreadId], None]
    drain: Drain = field(default_factory=lambda: Drain(0.0))
    """What runs have to come to a boundary when the host is told to stop."""
    external: ExternalStorage | None = None
    items: Callable[[str, items_pb2.ItemsRequest], Awaitable[items_pb2.ItemsReply]] | None = None
    """Answers what agents ask of their owner's store."""
    tracing: Tracing = NO_TRACING
    max_output: int = 1_500_000
    """Bytes of what a plain agent returns: its report, which carries the log's rest too, is lost over 2 MB."""
