"""Ends the running agent at its next chance, wherever it is: in a coroutine or in the main thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Cancellation:
    """Asked for by the host, from the channel's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancel_task: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None
        self.requested = False

    def request(self) -> None:
        """Cancel the agent's task, or raise KeyboardInterrupt in the main thread: blocking calls end by that too."""
        with self._lock:
            if self.requested:
                return
            self.requested = True
            if self._cancel_task is not None:
                loop, task = self._cancel_task
                loop.call_soon_threadsafe(task.cancel)
                return
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine in a loop of its own; raises CancelledError once the run is cancelled.

        Then the loop is left open: closing it would wait for every thread that a blocking node still runs in.
        """
        runner = asyncio.Runner()
        result = runner.run(self._guarded(work))
        runner.close()
        return result

    async def _guarded(self, work: Coroutine[object, object, T]) -> T:
        task = asyncio.ensure_future(work)
        with self._lock:
            self._cancel_task = (asyncio.get_running_loop(), task)  # pyright: ignore[reportAttributeAccessIssue] (a task of anything)
            if self.requested:
                task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._cancel_task = None
