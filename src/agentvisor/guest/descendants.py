"""The supervisor's children: it reaps all, and ends those that it did not start."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from agentvisor.guest.family import children, kill

DEADLINE_SECONDS = 2.0


class Descendants:
    """Reaps for the whole process, so nothing else in it may wait for a child.

    A process that the supervisor adopts has lost its agent (agents adopt their own orphans while they live): it is a
    leftover, and is killed.
    """

    def __init__(self) -> None:
        self._own: dict[int, asyncio.Future[None]] = {}
        self._died = asyncio.Event()

    def watch(self) -> None:
        """Start reaping, by SIGCHLD; from the main thread's loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def started(self, pid: int) -> asyncio.Future[None]:
        """Count `pid` as the supervisor's own; call it in the same turn of the loop in which it was started.

        The future ends when it is reaped: then what it leaves behind has been adopted, and not before.
        """
        self._own[pid] = asyncio.get_running_loop().create_future()
        return self._own[pid]

    async def sweep(self) -> None:
        """Kill what was adopted, and what that adopts, until nothing is left."""
        await self._end(lambda: children(os.getpid()) - self._own.keys())

    async def end_all(self) -> None:
        """Kill everything: what was started, then what that leaves behind."""
        await self._end(lambda: children(os.getpid()) | self._own.keys())

    async def _end(self, targets: Callable[[], set[int]]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while pids := targets():
                    self._died.clear()
                    for pid in pids:
                        kill(pid)
                    await self._died.wait()
        except TimeoutError:
            # Something sits in the kernel, unkillable for now; it is killed as soon as it returns from there.
            return

    def _reap(self) -> None:
        while True:
            try:
                pid, _status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if (reaped := self._own.pop(pid, None)) is not None and not reaped.done():
                reaped.set_result(None)
        self._died.set()
