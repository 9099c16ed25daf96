"""Ends the running agent at its next chance, wherever it is: in a coroutine or in the main thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Cancellation:
    """Asked for by the host, from the channel's thread; at most once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None
        self.requested = False

    def request(self) -> None:
        """Cancel the agent's task, or raise KeyboardInterrupt in the main thread; blocking calls end too."""
        with self._lock:
            if self.requested:
                return
            self.requested = True
            if self._task is not None:
                loop, task = self._task
                loop.call_soon_threadsafe(task.cancel)
                return
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    async def guard(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine so that a request cancels it."""
        task = asyncio.ensure_future(work)
        with self._of_task(asyncio.get_running_loop(), task):
            return await task

    @contextmanager
    def _of_task(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> Generator[None]:
        with self._lock:
            self._task = (loop, task)  # pyright: ignore[reportAttributeAccessIssue] (Task is invariant in its result)
            if self.requested:
                task.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._task = None
