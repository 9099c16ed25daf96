"""The supervisor's children: how each that it started ended, and an end for all that it adopted."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import NamedTuple

from agentvisor.guest.family import children, kill, kill_group


class Exit(NamedTuple):
    """What waitid says: an exit code, or the number of the signal that killed it."""

    killed: bool
    code: int


class Descendants:
    """Reaps for the whole process, so nothing else in it may wait for a child.

    A process that the supervisor adopts has lost its agent (agents adopt their own orphans while they live): it is a
    leftover, and is killed.
    """

    def __init__(self) -> None:
        self._own: dict[int, asyncio.Future[Exit]] = {}
        self._died = asyncio.Event()

    def watch(self) -> None:
        """Start reaping, by SIGCHLD; from the main thread's loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def started(self, pid: int) -> asyncio.Future[Exit]:
        """Count `pid` as the supervisor's own; call it in the same turn of the loop in which it was started."""
        self._own[pid] = future = asyncio.get_running_loop().create_future()
        return future

    async def sweep(self, deadline_seconds: float = 2.0) -> None:
        """Kill what was adopted, and what that adopts, until nothing is left."""
        try:
            async with asyncio.timeout(deadline_seconds):
                while leftovers := children(os.getpid()) - self._own.keys():
                    self._died.clear()
                    for pid in leftovers:
                        kill(pid)
                    await self._died.wait()
        except TimeoutError:
            # Something sits in the kernel, unkillable for now; it is killed as soon as it returns from there.
            return

    async def end_all(self) -> None:
        """Kill everything: what was started, then what that leaves behind."""
        for pid in self._own:
            kill(pid)
        async with asyncio.timeout(2.0):
            await asyncio.gather(*self._own.values())
        await self.sweep()

    def _reap(self) -> None:
        while True:
            try:
                result = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if result is None:
                break
            pid = result.si_pid
            own = self._own.pop(pid, None)
            if own is not None:
                # An agent leads a group; before it is reaped, its id is its own.
                kill_group(pid)
            os.waitid(os.P_PID, pid, os.WEXITED)
            if own is not None and not own.done():
                own.set_result(Exit(result.si_code != os.CLD_EXITED, result.si_status))
        self._died.set()
