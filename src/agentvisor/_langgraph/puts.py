"""Who wants to know how the puts of this process end: the runner holds a graph back that is too far ahead of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from agentvisor.client.known import CheckpointName

Ended = Callable[[CheckpointName, bool], None]
"""Told of a put that has ended: its checkpoint, and whether that is stored."""

_listeners: list[Ended] = []


@contextmanager
def telling(listener: Ended) -> Generator[None]:
    """While it lasts, the listener is told of each put that is awaited, in the event loop of the put."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def ending(name: CheckpointName) -> Generator[None]:
    """Around a put."""
    try:
        yield
    except BaseException:
        _tell(name, stored=False)
        raise
    _tell(name, stored=True)


def _tell(name: CheckpointName, *, stored: bool) -> None:
    for listener in _listeners:
        listener(name, stored)
