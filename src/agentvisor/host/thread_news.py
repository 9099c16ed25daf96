"""Wakes those who wait for a run to begin on a thread, wherever it was accepted and wherever it runs.

What this host accepts or begins, it says itself. Other hosts' runs are found by Temporal's visibility, which tells what
threads are busy: one question for many threads, as long as somebody waits. A run that was over before the question is
found by a look at the thread, which each who waits takes now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import structlog

from agentvisor.core.errors import AgentVisorError
from agentvisor.core.ids import ThreadId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.threads")

Busy = Callable[[Sequence[ThreadId]], Awaitable[Sequence[ThreadId]]]
"""Which of these threads a run is active on."""

ASK_EVERY = 1.0
"""Seconds between two questions to Temporal's visibility."""

LOOK_EVERY = 10.0
"""Seconds after which a thread is worth a look although nobody has said so."""

_AT_ONCE = 100


class ThreadNews:
    """Of one host."""

    def __init__(self, busy: Busy | None = None) -> None:
        self._busy = busy
        self._waiting: dict[ThreadId, set[asyncio.Event]] = {}

    def tell(self, thread_id: ThreadId) -> None:
        """A run was accepted on the thread, or an attempt of one begins."""
        for one in self._waiting.get(thread_id, ()):
            one.set()

    @contextmanager
    def watching(self, thread_id: ThreadId) -> Generator[Watch]:
        """A watch over a thread; news that come between two looks are not lost."""
        event = asyncio.Event()
        self._waiting.setdefault(thread_id, set()).add(event)
        try:
            yield Watch(event)
        finally:
            waiting = self._waiting[thread_id]
            waiting.discard(event)
            if not waiting:
                del self._waiting[thread_id]

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None]:
        """Ask for other hosts' runs while the context lasts."""
        asking = asyncio.create_task(self._ask(), name="thread news")
        try:
            yield
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    async def _ask(self) -> None:
        while self._busy is not None:
            await asyncio.sleep(ASK_EVERY)
            waiting = [*self._waiting]
            for first in range(0, len(waiting), _AT_ONCE):
                try:
                    found = await self._busy(waiting[first : first + _AT_ONCE])
                except AgentVisorError as error:
                    log.warning("thread_news_missing", error=error.message)
                    break
                for one in found:
                    self.tell(one)


class Watch:
    """Of one who waits."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def begin(self) -> None:
        """Before a look: what is new after this wakes."""
        self._event.clear()

    async def wait(self) -> None:
        """Until there are news, or a look is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY):
                await self._event.wait()
