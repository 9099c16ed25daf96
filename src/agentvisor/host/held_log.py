"""The log of an update: what it does to the thread is held back until it has come to its end, and counts as a whole.

Values are logged at once, as they may be large: one that no checkpoint names is dropped when the attempt ends.
"""

from __future__ import annotations

import asyncio

from agentvisor.core.errors import StateTooLarge
from agentvisor.host.journal import Journal, Urgency
from agentvisor.protocol.v1 import journal_pb2

MOST_BYTES = 1_000_000
"""Held back for the attempt's report: with the log's rest, which is a quarter of it, that stays below 2 MB."""


class HeldLog:
    """Answers a write as soon as it is held: whoever made the update is answered when its attempt has ended."""

    def __init__(self, journal: Journal) -> None:
        self.together: list[bytes] = []
        """Operations, in order, for `AttemptClose.together`."""
        self._journal = journal
        self._size = 0

    def append(self, entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:
        """Hold the operations; the future is done when their values are durable."""
        values: list[bytes] = []
        for entry in entries:
            if journal_pb2.Operation.FromString(entry).HasField("put_blobs"):
                values.append(entry)
            else:
                self.together.append(entry)
                self._size += len(entry)
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._size > MOST_BYTES:
            held.set_exception(
                StateTooLarge(
                    f"the update's checkpoints have {self._size} bytes without their values, and the limit is "
                    f"{MOST_BYTES}: make it in several",
                    size=str(self._size),
                    limit=str(MOST_BYTES),
                )
            )
            held.exception()  # it may be that nobody waits
            return held
        if values:
            return self._journal.append(values, urgency)
        held.set_result(None)
        return held

    @property
    def last_seq(self) -> int:
        return self._journal.last_seq

    @property
    def is_closing(self) -> bool:
        return self._journal.is_closing

    async def until_fenced(self) -> None:
        await self._journal.until_fenced()
