"""A checkpoint is sent after the pending writes of the tasks that led to it.

LangGraph hands both to threads of a pool, so a put could overtake a put_writes that was called before it. The host
makes durable in the order in which it receives: with the writes sent first, no acknowledged checkpoint can be without
writes that were made before it (langgraph#8039).
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class WriteOrder:
    """Knows which writes were begun and are not sent yet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._begun = 0
        self._unsent: set[int] = set()

    @contextmanager
    def sending(self) -> Generator[None]:
        """Around serialising and sending pending writes."""
        with self._changed:
            self._begun += 1
            ticket = self._begun
            self._unsent.add(ticket)
        try:
            yield
        finally:
            with self._changed:
                self._unsent.remove(ticket)
                self._changed.notify_all()

    def wait(self) -> None:
        """Block until every write that was begun before this call has been sent, or has failed to be."""
        with self._changed:
            last = self._begun
            self._changed.wait_for(lambda: all(ticket > last for ticket in self._unsent))
