"""Which earlier version of a channel the next one is stored as a difference from."""

from __future__ import annotations

from dataclasses import dataclass

from agentvisor.protocol.blobs import Stored

WIDTH = 16
"""How many differences of one size follow each other before one of the next size."""


@dataclass(frozen=True, slots=True)
class Line:
    """A channel's versions in the order in which they were stored, as far as the next difference may start from them.

    Version 17 is a difference from 16, which is one from 0; version 33 from 32 from 16 from 0. So 4000 versions of a
    growing list are never more than 45 differences deep, each of its items is in about three of them, and none has to
    be stored whole again: always taking the last version would need that every 64.
    """

    anchors: tuple[Stored, ...]
    """By level: the last version whose number is a multiple of WIDTH ** level. The last one is where the line began."""
    number: int = 0

    @property
    def last(self) -> Stored:
        return self.anchors[0]

    def base(self) -> Stored:
        """What the next version should be a difference from."""
        return self.anchors[min(_level(self.number + 1), len(self.anchors) - 1)]

    def extended(self, new: Stored) -> Line:
        """The line after `new`, which is a difference from `base()`, was stored."""
        level = _level(self.number + 1)
        padded = self.anchors + self.anchors[-1:] * (level + 2 - len(self.anchors))
        return Line((new,) * (level + 1) + padded[level + 1 :], self.number + 1)

    def bytes_held(self) -> int:
        return sum(len(data) for data in {id(one): one.data for one in self.anchors}.values())


def _level(number: int) -> int:
    level = 0
    while number % WIDTH == 0:
        number, level = number // WIDTH, level + 1
    return level
