"""Passes messages on: in order within a lane, while no lane waits for another."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

log = logging.getLogger("agentvisor.testing")
Message = TypeVar("Message")

ON_THE_WAY = 1024
"""Messages that may wait, in all lanes together."""


class Lanes(Generic[Message]):
    """`allow` decides about each message, and may take its time; what it allows is written."""

    def __init__(
        self, allow: Callable[[Message], Awaitable[bool]], write: Callable[[Message], Awaitable[None]]
    ) -> None:
        self._allow = allow
        self._write = write
        self._writing = asyncio.Lock()
        self._room = asyncio.Semaphore(ON_THE_WAY)
        self._lanes: dict[str, deque[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once a message could not be passed on."""

    async def put(self, lane: str, message: Message) -> None:
        """Let it follow what is in its lane."""
        await self._room.acquire()
        if lane in self._lanes:
            self._lanes[lane].append(message)
            return
        self._lanes[lane] = deque([message])
        task = asyncio.create_task(self._run(lane))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Pass nothing on any more."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, lane: str) -> None:
        waiting = self._lanes[lane]
        try:
            while waiting:
                message = waiting.popleft()
                if await self._allow(message):
                    async with self._writing:
                        await self._write(message)
                self._room.release()
        finally:
            del self._lanes[lane]

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # Mostly the other end is gone; should it be a fault of ours, the host's log has it.
        log.warning("a message could not be passed on", exc_info=error)
        if not self.failed.done():
            self.failed.set_result(None)
