"""What workflows tell the host that runs them, for its metrics, its log and its traces: once, and not when replayed.

None of it is a command of Temporal's: a history replays the same whoever listens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Generic, ParamSpec

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.attempts import End
    from agentvisor.core.ids import ThreadId

Told = ParamSpec("Told")


class Channel(Generic[Told]):
    """From all workflows of this process to those who listen.

    They are called in steps of workflows, from any thread: nothing of theirs may fail there, or take time.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[Told, None]] = []

    def tell(self, *args: Told.args, **kwargs: Told.kwargs) -> None:
        """Tell everybody who listens."""
        if not self._listeners or workflow.unsafe.is_replaying():
            return
        with workflow.unsafe.sandbox_unrestricted():
            for listener in (*self._listeners,):
                listener(*args, **kwargs)

    def add(self, listener: Callable[Told, None]) -> None:
        """Tell this one from now on, too; it is of the process, and hears once however many hosts add it."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    @contextmanager
    def listening(self, listener: Callable[Told, None]) -> Generator[None]:
        """Tell this one, too, while the context lasts."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


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


COUNTS: Channel[Counted, tuple[str, ...], float] = Channel()
"""What is counted, the labels, and how many."""

NOTES: Channel[str, str, Mapping[str, str]] = Channel()
"""For the log: the level, the event's name and its fields."""

ENDS: Channel[ThreadId, End] = Channel()
"""Attempts and runs that end, for traces: of which thread, and what."""


def counted(what: Counted, *labels: str, number: float = 1) -> None:
    """Count something that a workflow did."""
    COUNTS.tell(what, labels, number)


def noted(level: str, event: str, **fields: str) -> None:
    """Log an event of this workflow; the host's table has it (host/log_events.py)."""
    NOTES.tell(level, event, fields)
