"""The effects that are happening in this process: a second call with the same key waits for the first."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from agentvisor.core.errors import InvalidInput

Name = tuple[str, str]
"""Scope and key."""


@dataclass(frozen=True, slots=True)
class Live:
    """A call under way."""

    ended: Future[None] = field(default_factory=Future[None])
    loop: asyncio.AbstractEventLoop | None = None

    def wait(self, name: Name) -> None:
        """Block until it has ended; `InvalidInput` where that would be for ever."""
        if not self.ended.done() and self.loop is not None and self.loop is running_loop():
            raise InvalidInput(
                f"effect {name[1]!r} is happening in this event loop, which a second, blocking call of it would stop: "
                "give once a coroutine function"
            )
        self.ended.result()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_live: dict[Name, Live] = {}
_lock = threading.Lock()


def claim(name: Name) -> Live | None:
    """Begin a call; or the one under way with that name, to be waited for first."""
    with _lock:
        other = _live.get(name)
        if other is None:
            _live[name] = Live(loop=running_loop())
        return other


def release(name: Name) -> None:
    """End a call."""
    with _lock:
        live = _live.pop(name)
    live.ended.set_result(None)
