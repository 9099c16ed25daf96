"""What workflows count for the metrics of the host that runs them: once, and not again when they are replayed."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from temporalio import workflow


class Counted(Enum):
    """What is counted; the host has a metric for each (host/metrics.py)."""

    COMPACTED = "compacted"
    """Continued as new; by what became of the guest."""
    SHED = "shed"
    """Left out of a state that did not fit; by step."""
    FAILED = "failed"
    """Ended loudly; by reason."""
    RESTARTED = "restarted"
    """Runs that were lost and go on in another attempt; by ending."""
    GIVEN_UP = "given_up"
    """Runs that were lost and end, their restarts being used up; by ending."""
    EXPIRED = "expired"
    """Interrupts that nobody answered before their deadlines; by what became of them."""
    ENDED = "ended"
    """A run that ended; by agent, framework as far as it was told, and outcome. The number: its seconds."""
    CARRIED = "carried"
    """A state that went to the next execution. The number: its bytes."""


Count = Callable[[Counted, tuple[str, ...], float], None]
"""Takes what is counted, the labels, and how many."""

_counts: list[Count] = []


def count_into(count: Count) -> None:
    """Count with this from now on, beside those before."""
    if count not in _counts:
        _counts.append(count)


def counted(what: Counted, *labels: str, number: float = 1) -> None:
    """Count something that a workflow did."""
    if not workflow.unsafe.is_replaying():
        for count in _counts:
            count(what, labels, number)
