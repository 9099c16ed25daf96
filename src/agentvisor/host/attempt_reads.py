"""What one attempt reads of its thread: as it is now that the attempt has its token, and values later on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from agentvisor.core.errors import Fenced, Unavailable
from agentvisor.core.ids import BlobKey, ThreadId
from agentvisor.core.records import Blob
from agentvisor.core.thread import Thread
from agentvisor.core.weighing import unsheddable_blobs
from agentvisor.host.external.attempt_objects import Outlines
from agentvisor.host.journal import Journal
from agentvisor.host.threads_read import ThreadReader
from agentvisor.protocol.v1 import thread_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.run")
Read = TypeVar("Read")

_READ_AGAIN = 0.2


class AttemptReads:
    """Reads from Temporal, an outage of it waited out as long as the attempt lives (S20)."""

    def __init__(self, reader: ThreadReader, thread_id: ThreadId, journal: Journal) -> None:
        self._reader = reader
        self._thread_id = thread_id
        self._journal = journal
        run_id, attempt = journal.attempt
        self._log = log.bind(thread=thread_id, run=run_id, attempt=attempt)

    def bind(self, trace_id: str) -> None:
        """Let what is logged here name the run's trace: values are read for calls that come from elsewhere."""
        self._log = self._log.bind(trace_id=trace_id)

    async def thread(self) -> Thread:
        """The thread as it is now that this attempt has the token (READCONS). `Fenced` where it is not the current one.

        With it come the values that the agent reads first, and that the door must know the size of.
        """
        run_id, attempt = self._journal.attempt
        asked = thread_pb2.ReadThread(whole_run_id=run_id, thread_state=True)
        thread = await self._patiently(lambda: self._reader.state(self._thread_id, asked))
        if not thread.is_current(self._journal.attempt):
            self._journal.fence()
            raise Fenced(f"attempt {attempt} of run {run_id} is not the current one")
        store = thread.store
        store.keep = thread.settings.checkpoint_history  # as the workflow does, operation by operation
        keys = sorted(unsheddable_blobs(store))
        for blob in await self.blobs(keys) if keys else ():
            store.add_blob(blob)
        return thread

    async def blobs(self, keys: list[BlobKey]) -> list[Blob]:
        """Stored blobs: see LoadBlobs."""
        return await self._patiently(lambda: self._reader.blobs(self._thread_id, keys))

    async def outlines(self) -> Outlines:
        """What the workflow's state holds of blobs; `Unavailable` in an outage."""
        return await self._reader.outlines(self._thread_id)

    async def is_over(self) -> bool:
        """Whether the run has ended: it does not go on in another attempt. An error where that cannot be told."""
        run_id = self._journal.attempt.run_id
        asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id="-")
        run = (await self._reader.state(self._thread_id, asked)).runs.get(run_id)
        return run is None or run.status.terminal

    async def _patiently(self, read: Callable[[], Awaitable[Read]]) -> Read:
        while not self._journal.is_fenced:
            try:
                return await read()
            except Unavailable as error:
                self._log.warning("read_again", error=error.message)
                await asyncio.sleep(_READ_AGAIN)
        run_id, attempt = self._journal.attempt
        raise Fenced(f"attempt {attempt} of run {run_id} has ended", run_id=run_id)
