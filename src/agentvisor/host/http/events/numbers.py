"""Numbers of a thread's events: they grow from run to run and from host to host, and nobody has to keep a count.

The number of an event comes from its place on its run's tape, which is counted from a clock's microseconds on; how a
run ended is numbered by the time of its end. So two readers, on two hosts, number alike what both of them see. A
program in JavaScript reads numbers up to 2**53: that is enough until 2042.
"""

from __future__ import annotations

EPOCH_US = 1_735_689_600_000_000
"""2025-01-01, in microseconds."""

ROOM = 16
"""Events that one place on a tape may become before the next ones have to make way."""


def of_place(tape_id: int) -> int:
    """The first number of what a place on a tape becomes."""
    return max(0, tape_id - EPOCH_US) * ROOM


def of_end(ended_at_ms: int) -> int:
    """The first number of what is told of a run's end."""
    return of_place(ended_at_ms * 1000)


def after_end(ended_at_ms: int) -> int:
    """The last number that belongs to a run which ended then: what follows has higher ones."""
    return of_end(ended_at_ms + 1) - 1


class Numbers:
    """Gives out numbers, each higher than the last."""

    def __init__(self) -> None:
        self.last = 0

    def next(self, wanted: int = 0) -> int:
        """The number that is wanted; where that was given out already, the one after the last."""
        self.last = max(self.last + 1, wanted)
        return self.last

    def pass_by(self, number: int) -> None:
        """Give out no number up to this one any more."""
        self.last = max(self.last, number)
