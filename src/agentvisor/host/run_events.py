"""The events of any run, read on any host: keeps the run's tape here fed until the run's end is durable."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from agentvisor.core.errors import AgentVisorError
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.owners import Owner
from agentvisor.core.runs import Run
from agentvisor.host.streams import RunStreams
from agentvisor.host.threads import Threads


class RunEvents:
    """Enter `following`, read `RunStreams.subscribe` inside it to its end, then await what was yielded: the run."""

    def __init__(self, threads: Threads, streams: RunStreams) -> None:
        self._threads = threads
        self._streams = streams

    def of(self, owner: Owner) -> RunEvents:
        """The same for one owner: of other owners' threads no run is followed."""
        own = copy.copy(self)
        own._threads = self._threads.of(owner)  # noqa: SLF001 - it is of this class
        return own

    @asynccontextmanager
    async def following(self, thread_id: ThreadId, run_id: RunId) -> AsyncGenerator[asyncio.Task[Run]]:
        """Feed the run's tape while the context lasts; yields the run once its end is durable, which ends the tape.

        The loss of the run's thread ends the tape, too; the task then fails with the error.
        """
        self._streams.open(run_id)
        ending = asyncio.create_task(self._until_ended(thread_id, run_id), name=f"end of run {run_id}")
        try:
            yield ending
        finally:
            ending.cancel()
            with suppress(asyncio.CancelledError, AgentVisorError):
                await ending

    async def _until_ended(self, thread_id: ThreadId, run_id: RunId) -> Run:
        try:
            run = await self._threads.wait_run(thread_id, run_id)
        except Exception:
            self._streams.close(run_id)
            raise
        # Not where this reader leaves: the run goes on, and so does its tape.
        self._streams.close(run_id)
        return run
