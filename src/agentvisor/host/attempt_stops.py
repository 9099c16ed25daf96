"""What ends an attempt from outside: its loss, a host that stops, a caller's cancel; to be waited for beside others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import structlog

from agentvisor.host.journal import Journal
from agentvisor.host.journal_calls import JournalCalls

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.run")
Other = TypeVar("Other")

_ASK_WHY_AGAIN = 0.2


class Stops:
    """The three of them, while somebody waits."""

    def __init__(self, fenced: asyncio.Task[None], stopping: asyncio.Task[None], cancel: asyncio.Task[None]) -> None:
        self._fenced, self._stopping, self._cancel = fenced, stopping, cancel

    async def first(self, *others: asyncio.Future[Other], timeout: float) -> None:
        """Return with the first of them, or of others, or after so many seconds."""
        waited: list[asyncio.Future[Other] | asyncio.Task[None]] = [*others, self._fenced, self._stopping, self._cancel]
        await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    @property
    def but_the_host(self) -> list[asyncio.Task[None]]:
        """The attempt's loss, and a cancel: what a host that stops still heeds."""
        return [self._fenced, self._cancel]

    @property
    def host_stops(self) -> bool:
        return self._stopping.done()

    @property
    def cancelled(self) -> bool:
        """The run shall end; or it could not be told whether it shall."""
        return self._cancel.done()

    def check(self) -> None:
        """Raise what went wrong where it could not be told whether the run shall end."""
        if self._cancel.done():
            self._cancel.result()


class AttemptStops:
    """Watches one attempt for what may end it; a compaction is answered by a hand-over on the way."""

    def __init__(
        self,
        journal: Journal,
        calls: JournalCalls,
        stopping: asyncio.Event,
        *,
        own_queue: str,
        before_hand_over: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._calls = calls
        self._stopping = stopping
        self._own_queue = own_queue
        self._before_hand_over = before_hand_over

    @contextmanager
    def watched(self) -> Generator[Stops]:
        """Watch while this lasts."""
        fenced = asyncio.create_task(self._journal.until_fenced())
        stopping = asyncio.create_task(self._until_stopping())
        cancel = asyncio.create_task(self._until_cancelled())
        try:
            yield Stops(fenced, stopping, cancel)
        finally:
            for task in (fenced, stopping, cancel):
                task.cancel()

    async def _until_stopping(self) -> None:
        await self._stopping.wait()

    async def _until_cancelled(self) -> None:
        """Return once the run shall end, or is lost."""
        while not self._journal.is_fenced:
            await self._journal.cancel_seen.wait()
            known = await self._calls.read_attempt(self._journal.attempt)
            if known is not None and known.cancel_requested:
                return
            if known is not None and known.compacting:
                await self._before_hand_over()
                log.info("attempt_handed_over")
                await self._journal.hand_over(self._own_queue)
                continue
            await asyncio.sleep(_ASK_WHY_AGAIN)
