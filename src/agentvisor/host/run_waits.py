"""Waiting for runs: an end on this host is told at once, one elsewhere is seen after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentvisor.core.errors import Conflict, NotFound, Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Run
from agentvisor.core.thread import Thread
from agentvisor.host.threads_read import NO_RUN, ThreadReader
from agentvisor.protocol.v1 import thread_pb2

_LOOK = 0.2
"""Between looks at a run; of an end on this host its attempt tells at once, and each look costs a workflow task."""
_LOOK_MOST = 1.0


class RunWaits:
    """Those who wait on this host."""

    def __init__(self) -> None:
        self._waiting: dict[RunId, set[asyncio.Future[None]]] = {}

    def attempt_ended(self, run_id: RunId) -> None:
        """A hint from this host's attempts: waiting for the run is worth a look."""
        for hint in self._waiting.get(run_id, ()):
            if not hint.done():
                hint.set_result(None)

    async def until_ended(
        self, reader: ThreadReader, thread_id: ThreadId, run_id: RunId, seen: Callable[[Run], None]
    ) -> None:
        """Return once the run has ended; `seen` is told of each look at it."""

        async def has_ended() -> bool:
            run = await _glance(reader, thread_id, run_id)
            if run is None or run.rolled_back:
                await reader.describe(thread_id)  # or is it the thread that is gone?
                raise no_run(thread_id, run_id)
            seen(run)
            return run.status.terminal

        await self._until(run_id, has_ended)

    async def until_gone(self, reader: ThreadReader, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once nothing is left of a run that is rolled back; `Conflict` where that could not be done."""

        async def is_gone() -> bool:
            run = await _glance(reader, thread_id, run_id)
            if run is not None and not run.rolled_back:
                raise Conflict(run.error_message or f"run {run_id} is not rolled back", run_id=run_id)
            return run is None

        await self._until(run_id, is_gone)

    async def until_told(self, reader: ThreadReader, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once the run has ended and its webhook, where it has one, has heard of that or was given up."""

        async def is_told() -> bool:
            thread = await _sketch(reader, thread_id)
            run = thread.runs.get(run_id)
            return run_id not in thread.notices and (run is None or run.status.terminal)

        await self._until(run_id, is_told)

    async def _until(self, run_id: RunId, holds: Callable[[], Awaitable[bool]]) -> None:
        """Look again and again: at once where an attempt has ended here, else after a while."""
        pause = _LOOK
        while True:
            # Before the look: an end that comes after it must not be missed.
            hint: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(run_id, set())
            waiting.add(hint)
            try:
                if await holds():
                    return
                done, _ = await asyncio.wait([hint], timeout=pause)
                pause = _LOOK if done else min(pause * 1.5, _LOOK_MOST)
            except Unavailable:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _LOOK_MOST)
            finally:
                waiting.discard(hint)
                if not waiting:
                    self._waiting.pop(run_id, None)


async def _glance(reader: ThreadReader, thread_id: ThreadId, run_id: RunId) -> Run | None:
    """The run without its input and output; None where the thread has none of that id."""
    return (await _sketch(reader, thread_id)).runs.get(run_id)


async def _sketch(reader: ThreadReader, thread_id: ThreadId) -> Thread:
    """The thread without its checkpoints, and its runs without their inputs."""
    return await reader.state(thread_id, thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=NO_RUN))


def no_run(thread_id: ThreadId, run_id: RunId) -> NotFound:
    return NotFound(f"thread {thread_id} has no run {run_id}", run_id=run_id)
