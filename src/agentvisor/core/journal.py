"""An attempt's write-ahead log: what is not yet in the workflow's state, numbered without gaps.

The rules named in comments are those of the journal protocol (docs/journal.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple


class Stretch(NamedTuple):
    """Consecutive operations of a log, encoded; `first_seq` numbers the first."""

    first_seq: int
    entries: tuple[bytes, ...]

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.entries) - 1


ENTRY_OVERHEAD = 8
"""Bytes that an entry costs beside its own, at most."""


@dataclass(slots=True)
class WriteAheadLog:
    """Appended to by the guest's calls, emptied by folds that the server has accepted."""

    first_seq: int = 1
    entries: deque[bytes] = field(default_factory=deque[bytes])
    size: int = 0

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.entries) - 1

    def append(self, entry: bytes) -> int:
        """Add an operation; its sequence number."""
        self.entries.append(entry)
        self.size += len(entry) + ENTRY_OVERHEAD
        return self.last_seq

    def all(self) -> Stretch:
        return Stretch(self.first_seq, tuple(self.entries))

    def stretches(self, up_to: int, limit: int) -> Iterator[Stretch]:
        """The log up to a sequence number, in stretches of at most `limit` bytes (one entry at least), in order."""
        first, chosen, size = self.first_seq, list[bytes](), 0
        for entry in tuple(islice(self.entries, max(0, up_to - self.first_seq + 1))):
            cost = len(entry) + ENTRY_OVERHEAD
            if chosen and size + cost > limit:
                yield Stretch(first, tuple(chosen))
                first, chosen, size = first + len(chosen), [], 0
            chosen.append(entry)
            size += cost
        if chosen:
            yield Stretch(first, tuple(chosen))

    def trim(self, up_to: int) -> None:
        """Forget what the workflow surely has. KEEPFOLDLOG: only after a definite OK of the signal that carried it."""
        while self.entries and self.first_seq <= up_to:
            self.size -= len(self.entries.popleft()) + ENTRY_OVERHEAD
            self.first_seq += 1


class Arrival(NamedTuple):
    """What a received stretch brings to a state that has applied everything up to `applied`."""

    fresh: tuple[bytes, ...]
    first_seq: int
    gap: bool


def arrival(applied: int, stretch: Stretch) -> Arrival:
    """DEDUP: what is new in a stretch. A gap means that operations before it have not come: nothing may be applied."""
    if stretch.entries and stretch.first_seq > applied + 1:
        return Arrival((), applied + 1, gap=True)
    known = applied + 1 - stretch.first_seq
    return Arrival(stretch.entries[known:] if known < len(stretch.entries) else (), applied + 1, gap=False)
