"""A run's latest events in the order of their numbers, with a mark wherever some between two of them are missing."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from agentvisor.core.ids import RunId, ThreadId

_OVERHEAD = 200


class TapeId(NamedTuple):
    """Whose events they are: a run of a thread.

    Not the run alone: a thread that was imported has runs of the ids that they have where it comes from, on this
    deployment, too, and there it may be another owner's and at work.
    """

    thread_id: ThreadId
    run_id: RunId


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
    """Events that the reader has not seen are no longer kept, or went with the host that had them."""

    next_id: int

    @property
    def id(self) -> int:
        """A number of its own: of an event that is gone, or of none. Who has it has been told of the gap."""
        return self.next_id - 1

    @property
    def size(self) -> int:
        return _OVERHEAD


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How much is kept: of one run, and in all."""

    events: int = 10_000
    bytes: int = 16 * 1024 * 1024
    total_bytes: int = 128 * 1024 * 1024
    ended_runs: int = 256
    runs: int = 10_000


Held = tuple[int, str, tuple[str, ...], bytes, int]
"""Attempt, mode, namespace, data of an event that has no number yet, and when it came."""


@dataclass(slots=True)
class Tape:
    """A run's latest events."""

    items: deque[Event | Gap] = field(default_factory=deque[Event | Gap])
    dropped: int = 0
    """How many items fell off the beginning: the place of the first that is kept."""
    next_id: int = 0
    """Number of the next event; 0 before the first."""
    base: int = 0
    """The number from which an attempt counts that continues no earlier tape."""
    bytes: int = 0
    attempt: int = 0
    live: int = 0
    """The attempt of the run that lives on this host; 0: none does."""
    behind: bool = False
    """It is a copy, and the tape that it is a copy of may hold more."""
    held: list[Held] | None = None
    """Events of an attempt that takes over another host's tape, while that comes."""
    whole: bool = False
    """It is a copy to the end: the run has ended, and nothing more comes from anywhere."""
    closed: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """Wake who waits for news."""
        # Each reader holds the event that it waits for: a new one for those who come later.
        self.news.set()
        self.news = asyncio.Event()

    @property
    def first_id(self) -> int:
        """Number of the first event that is kept, or of the next one."""
        return self.items[0].id if self.items else self.next_id

    def add(self, item: Event | Gap) -> None:
        """Append what comes next."""
        self.items.append(item)
        self.bytes += item.size
        self.next_id = item.id + 1
        if isinstance(item, Event):
            self.attempt = max(self.attempt, item.attempt)

    def drop_oldest(self) -> int:
        """Let the first item fall off; its size."""
        oldest = self.items.popleft()
        self.dropped += 1
        self.bytes -= oldest.size
        return oldest.size

    def place_after(self, number: int) -> tuple[int, Gap | None] | None:
        """Where a reader goes on who has seen this number, and the gap before that; None while it cannot be told."""
        if number >= self.next_id:
            may_come = self.behind or self.held is not None
            if self.next_id == 0 or (may_come and not self.closed):
                return None
            if number == self.next_id - 1:
                return self.dropped + len(self.items), None
            # A number that this run's events never had.
            return self.dropped, Gap(self.first_id)
        place = bisect_right(self.items, number, key=lambda item: item.id)
        first = place == 0
        if first and self.first_id != number + 1 and not (self.items and isinstance(self.items[0], Gap)):
            return self.dropped, Gap(self.first_id)
        return self.dropped + place, None
