"""A host's last seconds: the time that its runs have to come to a point where another host can take them."""

from __future__ import annotations

import asyncio


class Drain:
    """Begins once, when the host is told to stop, and is over after its seconds, or as soon as it is forced."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = False
        """A signal has asked for the host's end, which begins this once all that was started is taken apart."""
        self.begun = asyncio.Event()
        """No run starts here any more; those that are alive are handed over at their next boundary."""
        self.hurry = asyncio.Event()
        """Half of the time is over: a boundary inside a subgraph will do, whatever is under way beside it."""
        self.over = asyncio.Event()
        """What has not come to a boundary is handed over where it is."""

    def begin(self) -> None:
        """The host stops; more than once is fine."""
        if self.begun.is_set():
            return
        self.begun.set()
        loop = asyncio.get_running_loop()
        loop.call_later(self.seconds / 2, self.hurry.set)
        loop.call_later(self.seconds, self.force)

    def force(self) -> None:
        """End the waiting, begun or not: somebody asked twice, or the time is over."""
        self.hurry.set()
        self.over.set()
