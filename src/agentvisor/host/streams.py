"""Events of the runs that live on this host, kept for a while so that a reader who was cut off goes on where it was.

A run's events are numbered, and the numbers grow across hosts, too: a host numbers from its clock on. A reader asks for
what comes after a number, and is told where that is gone. One event loop; nothing here waits for a reader.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from time import time

from agentvisor.core.ids import RunId

METADATA = "metadata"
"""The mode of the event that says which attempt begins."""

ALL = -1
"""Number before every event."""

_OVERHEAD = 200


@dataclass(frozen=True, slots=True)
class Event:
    """One event as the agent's process sent it; `data` is JSON."""

    id: int
    attempt: int
    mode: str
    namespace: tuple[str, ...]
    data: bytes
    at_ms: int = 0
    """When it came, in milliseconds of its host's clock."""

    @property
    def size(self) -> int:
        return len(self.data) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that the reader has not seen are no longer kept, or were another host's."""

    next_id: int


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How much is kept: of one run, and in all."""

    events: int = 10_000
    bytes: int = 16 * 1024 * 1024
    total_bytes: int = 128 * 1024 * 1024
    ended_runs: int = 256
    runs: int = 10_000


@dataclass(slots=True)
class _Tape:
    """A run's latest events."""

    next_id: int
    first_id: int
    events: deque[Event] = field(default_factory=deque[Event])
    bytes: int = 0
    attempt: int = 0
    closed: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        # Each reader holds the event that it waits for: a new one for those who come later.
        self.news.set()
        self.news = asyncio.Event()

    def drop_oldest(self) -> int:
        dropped = self.events.popleft()
        self.first_id = dropped.id + 1
        self.bytes -= dropped.size
        return dropped.size


class RunStreams:
    """The tapes of this host's runs."""

    def __init__(self, limits: StreamLimits | None = None, clock: Callable[[], float] = time) -> None:
        self._limits = limits or StreamLimits()
        self._clock = clock
        self._tapes: OrderedDict[RunId, _Tape] = OrderedDict()
        self._bytes = 0

    def open(self, run_id: RunId) -> None:
        """A run was accepted or started here, or somebody waits for its events; more than once is fine."""
        if run_id in self._tapes:
            return
        first = int(self._clock() * 1_000_000)
        self._tapes[run_id] = _Tape(next_id=first, first_id=first)
        if len(self._tapes) > self._limits.runs:
            # Runs that other hosts took leave empty tapes.
            quiet = (known for known, tape in self._tapes.items() if not tape.events and known != run_id)
            self.forget(next(quiet, next(iter(self._tapes))))

    def publish(self, run_id: RunId, attempt: int, mode: str, namespace: Sequence[str], data: bytes) -> None:
        """Add an event. Never blocks: what is over the limits falls off the tape's other end."""
        self.open(run_id)
        tape = self._tapes.get(run_id)
        if tape is None or tape.closed or attempt < tape.attempt:
            return  # an attempt that lost its run still talks
        self._tapes.move_to_end(run_id)
        event = Event(tape.next_id, attempt, mode, tuple(namespace), data, int(self._clock() * 1000))
        tape.next_id += 1
        tape.events.append(event)
        tape.bytes += event.size
        self._bytes += event.size
        while len(tape.events) > self._limits.events or tape.bytes > self._limits.bytes:
            self._bytes -= tape.drop_oldest()
        if self._bytes > self._limits.total_bytes:
            self._make_room()
        tape.tell()

    def attempt_started(self, run_id: RunId, attempt: int) -> None:
        """An attempt begins; its metadata event comes once."""
        self.open(run_id)
        tape = self._tapes.get(run_id)
        if tape is not None and attempt > tape.attempt:
            tape.attempt = attempt
            data = b'{"run_id":"%s","attempt":%d}' % (run_id.encode(), attempt)
            self.publish(run_id, attempt, METADATA, (), data)

    def close(self, run_id: RunId) -> None:
        """The run has ended, durably: readers end after what is left."""
        tape = self._tapes.get(run_id)
        if tape is None or tape.closed:
            return
        tape.closed = True
        self._tapes.move_to_end(run_id)
        self._make_room()
        tape.tell()

    def kept(self, run_id: RunId) -> list[Event]:
        """The events of the run that are kept here, as of now."""
        tape = self._tapes.get(run_id)
        return [] if tape is None else [*tape.events]

    def heard(self, run_id: RunId) -> int:
        """The last attempt of the run whose events came to this host; 0 where none did."""
        tape = self._tapes.get(run_id)
        return 0 if tape is None else tape.attempt

    def forget(self, run_id: RunId) -> None:
        """Drop a run's events; who reads them ends."""
        tape = self._tapes.pop(run_id, None)
        if tape is not None:
            tape.closed = True
            self._bytes -= tape.bytes
            tape.tell()

    async def subscribe(self, run_id: RunId, after: int | None) -> AsyncIterator[Event | Gap]:
        """The events after a number, then what comes, until the run has ended; a `Gap` where some are missing.

        Args:
            run_id: a run; where this host has never heard of it, nothing comes.
            after: number of the last event seen; None or `ALL`: from the first that is kept.
        """
        tape = self._tapes.get(run_id)
        if tape is None:
            return
        position = tape.first_id if after is None or after == ALL else after + 1
        while True:
            news = tape.news
            if not tape.first_id <= position <= tape.next_id:
                position = tape.first_id
                yield Gap(position)
                continue
            if position < tape.next_id:
                # Numbers have no holes, so that the place on the tape is known.
                event = tape.events[position - tape.first_id]
                position += 1
                yield event
                continue
            if tape.closed:
                return
            await news.wait()

    def _make_room(self) -> None:
        """Drop ended runs, the longest ended first; then the events of the runs that were quiet for longest."""
        ended = [run_id for run_id, tape in self._tapes.items() if tape.closed]
        while ended and (len(ended) > self._limits.ended_runs or self._bytes > self._limits.total_bytes):
            self.forget(ended.pop(0))
        for tape in self._tapes.values():
            while tape.events and self._bytes > self._limits.total_bytes:
                self._bytes -= tape.drop_oldest()
