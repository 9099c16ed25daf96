"""What workflows tell of runs and attempts that end, once, and not again when they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.ids import ThreadId
    from agentvisor.core.thread import End

Ended = Callable[[ThreadId, End], None]
"""Takes a thread, and what has ended of it."""

_listeners: list[Ended] = []


@contextmanager
def listening(listener: Ended) -> Generator[None]:
    """Tell this one, too, while the context lasts. It is called in steps of workflows, from any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def traced(thread_id: ThreadId, end: End) -> None:
    """Tell of an attempt's or a run's end."""
    if _listeners and not workflow.unsafe.is_replaying():
        for listener in (*_listeners,):
            listener(thread_id, end)
