"""Sends what is streamed in batches: an event waits for company, but not long."""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol

from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.guest_pb2 import StreamEvent, StreamEvents

LINGER_SECONDS = 0.005
BATCH_BYTES = 64 * 1024
EVENT_BYTES = 4 * 1024 * 1024
"""Of one event's data: a frame holds 8 MiB. A larger state is read with GET /threads/{id}/state."""


class EventSink(Protocol):
    """Takes a batch; blocks while the other end is slow, which is what bounds a run's events."""

    def send_events(self, events: StreamEvents) -> None: ...


class Events:
    """For one event loop. `flush` must come before the run's last word.

    On an agent's channel, what other threads send with `agentvisor.progress` comes after what is held back here.
    """

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._waiting: list[StreamEvent] = []
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()
        """Held while sending: the order on the wire is the order of what was said."""
        if isinstance(sink, Channel):
            sink.flush_events = self._send_waiting

    def send(self, mode: str, namespace: tuple[str, ...], data: bytes) -> None:
        """Queue an event; `data` is JSON. Of one that no message could carry, only the size is told."""
        if len(data) > EVENT_BYTES:
            data = b'{"__type__":"too_large","size":%d}' % len(data)
        with self._lock:
            self._waiting.append(StreamEvent(mode=mode, namespace=namespace, data=data))
            self._bytes += len(data)
        if self._bytes >= BATCH_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send_waiting()

    def _send_waiting(self) -> None:
        with self._lock:
            if self._waiting:
                waiting, self._waiting, self._bytes = self._waiting, [], 0
                self._sink.send_events(StreamEvents(events=waiting))
