"""Which earlier version of a channel the next one is stored as a difference from.

Always taking the last one makes chains longer and longer, and a value has to be stored whole again every 64 versions.
So small differences are summed up: when `WIDTH` of about the same size are on the way from the bottom to the last
version, the next one starts below them. A growing list is then in about three differences per item however long it
gets, and whole only once. It depends on sizes alone, which are stored: the next process goes on where this one ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agentvisor.protocol.blobs import Stored

WIDTH = 24
"""How many differences of about the same size there may be on the way to a version."""

_SMALL = 4096
_FACTOR = 16


@dataclass(frozen=True, slots=True)
class Line:
    """The way from a value that is stored whole to a channel's last version."""

    steps: tuple[int, ...]
    """Stored bytes of each difference on the way, the first one at the bottom."""
    held: Mapping[int, Stored]
    """The values that may be needed, by how many steps lead to them; the last version always."""

    @classmethod
    def of(cls, way: list[Stored], steps: list[int]) -> Line:
        """The line along values of which each is a difference from the one before."""
        return _keeping(tuple(steps), dict(enumerate(way)))

    @property
    def last(self) -> Stored:
        return self.held[len(self.steps)]

    def base(self) -> Stored:
        """What the next version should be a difference from."""
        return self.held[self._start()]

    def extended(self, new: Stored, size: int) -> Line:
        """The line after `new`, a difference of `size` stored bytes from `base()`."""
        start = self._start()
        return _keeping((*self.steps[:start], size), {**self.held, start + 1: new})

    def bytes_held(self) -> int:
        """Bytes of memory that the values take."""
        return sum(len(one.data) for one in self.held.values())

    def _start(self) -> int:
        """Below the deepest `WIDTH` differences of a size; where there are not so many, at the last version."""
        start, seen = len(self.steps), Counter[int]()
        for at in reversed(range(len(self.steps))):
            seen[_magnitude(self.steps[at])] += 1
            if seen[_magnitude(self.steps[at])] >= WIDTH and at in self.held:
                start = at
        return start


def _keeping(steps: tuple[int, ...], held: dict[int, Stored]) -> Line:
    # Below the deepest difference of each size: there, and nowhere else, a later one can start.
    deepest = {_magnitude(size): at for at, size in reversed(list(enumerate(steps)))}
    wanted = {*deepest.values(), len(steps)}
    return Line(steps, {at: one for at, one in held.items() if at in wanted})


def _magnitude(size: int) -> int:
    magnitude, limit = 0, _SMALL
    while size >= limit:
        magnitude, limit = magnitude + 1, limit * _FACTOR
    return magnitude
