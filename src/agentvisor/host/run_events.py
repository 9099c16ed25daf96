"""The events of any run, read on any host: keeps the run's tape here fed until the run's end is durable.

Where a run lives is in its record, and moves: a restart, a hand-over. While somebody reads a run that lives elsewhere,
this host copies its tape from there; a host on which an attempt begins takes over the tape of the one before.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

import structlog

from agentvisor.core.errors import AgentVisorError, Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.runs import Run
from agentvisor.host.peer_feed import PeerFeed, Sign
from agentvisor.host.peers import Peers
from agentvisor.host.streams import RunStreams, TapeId
from agentvisor.host.threads import Threads

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.streams")

_TAKE_OVER_SECONDS = 5.0
"""For what another host has, before an attempt's own events are shown without it."""
_CATCH_UP_SECONDS = 10.0
_FIRST_LOOKS = (0.05, 0.1, 0.2)
"""Seconds: a run that was started here mostly begins at once, here or elsewhere."""
_AGAIN = 0.5


class Followed:
    """A run that is read here. Awaited: the run once its end is durable; that, or its thread's loss, ends its tape."""

    def __init__(self, task: asyncio.Task[Run]) -> None:
        self._task = task
        self.readers = 0

    def __await__(self) -> Generator[object, None, Run]:
        # Several readers share the task: one that leaves does not end it.
        return asyncio.shield(self._task).__await__()

    async def stop(self) -> None:
        """Nobody reads it any more."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, AgentVisorError):
            await self._task


@dataclass(slots=True)
class _Sighting:
    """What the last look at a run has shown."""

    attempts: int = 0
    news: asyncio.Event | None = None

    def seen(self, run: Run) -> None:
        if len(run.attempts) != self.attempts and self.news is not None:
            self.attempts = len(run.attempts)
            self.news.set()


class RunEvents:
    """Enter `following`, read `RunStreams.subscribe` inside it to its end, then await what was yielded: the run."""

    def __init__(
        self, threads: Threads, streams: RunStreams, peers: Peers | None = None, feed: PeerFeed | None = None
    ) -> None:
        self._owner = EVERYONE
        self._threads = threads
        self._streams = streams
        self._peers = peers
        self._feed = feed
        self._followed: dict[tuple[Owner, TapeId], Followed] = {}
        self._stirs: dict[ThreadId, asyncio.Event] = {}

    def of(self, owner: Owner) -> RunEvents:
        """The same for one owner: other owners' runs do not exist there."""
        own = copy.copy(self)
        own._owner, own._threads = owner, self._threads.of(owner)  # noqa: SLF001 - it is of this class
        return own

    @asynccontextmanager
    async def following(self, thread_id: ThreadId, run_id: RunId) -> AsyncGenerator[Followed]:
        """Feed the run's tape while the context lasts."""
        place = TapeId(thread_id, run_id)
        key = self._owner, place
        followed = self._followed.get(key)
        if followed is None:
            self._streams.follow(place)
            task = asyncio.create_task(self._follow(place), name=f"events of run {run_id}")
            followed = self._followed[key] = Followed(task)
        followed.readers += 1
        try:
            yield followed
        finally:
            followed.readers -= 1
            if not followed.readers:
                del self._followed[key]
                await followed.stop()

    async def stirred(self, thread_id: ThreadId) -> None:
        """Wait until an attempt begins on this host in that thread."""
        stir = self._stirs.setdefault(thread_id, asyncio.Event())
        try:
            await stir.wait()
        finally:
            if self._stirs.get(thread_id) is stir:
                del self._stirs[thread_id]

    async def _follow(self, place: TapeId) -> Run:
        sighting = _Sighting(news=asyncio.Event())
        copying = asyncio.create_task(self._copy(place, sighting), name=f"copy of run {place.run_id}")
        try:
            run = await self._threads.wait_run(*place, sighting.seen)
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            await self._catch_up(place, run)
        except Exception:
            self._streams.close(place)
            raise
        finally:
            copying.cancel()
        # Not where the last reader leaves: the run goes on, and so does its tape.
        self._streams.close(place)
        return run

    # --- a run that lives elsewhere ----------------------------------------------------------------------------------

    async def _copy(self, place: TapeId, sighting: _Sighting) -> None:
        """Bring what the host has on which the run's attempts live, one after the other."""
        if self._peers is None or self._feed is None or sighting.news is None:
            return
        looks = iter(_FIRST_LOOKS)
        while True:
            # A look at the run tells of the next attempt; between two looks it may have begun.
            with suppress(TimeoutError):
                await asyncio.wait_for(sighting.news.wait(), next(looks, _AGAIN))
            sighting.news.clear()
            tape = self._streams.get(place)
            if tape is None or tape.closed:
                return
            if tape.live or not await self._peers.any_other():
                continue
            try:
                host_id = _last_host(await self._threads.get_run(*place))
            except Unavailable:
                continue
            if host_id and host_id != self._peers.host_id:
                await self._until_moved(host_id, place, sighting.news)

    async def _until_moved(self, host_id: str, place: TapeId, moved: asyncio.Event) -> None:
        """Copy from that host, until it has nothing more, does not answer, or the run is seen to have moved."""
        copying = asyncio.create_task(self._bring(host_id, place))
        waiting = asyncio.create_task(moved.wait())
        try:
            await asyncio.wait([copying, waiting], return_when=asyncio.FIRST_COMPLETED)
            if copying.done() and (error := copying.exception()) is not None:
                if not isinstance(error, AgentVisorError):
                    raise error
                log.info("events_not_here", run=place.run_id, host=host_id, error=error.message)
        finally:
            copying.cancel()
            waiting.cancel()
            await asyncio.gather(copying, waiting, return_exceptions=True)

    async def _bring(self, host_id: str, place: TapeId, *, takes_over: int = 0, until_there: bool = False) -> bool:
        """Add what that host's tape holds to the one here; whether nothing more can come from there."""
        if self._feed is None:
            return False
        tape = self._streams.open(place)
        last = tape.next_id - 1 if tape.next_id else None
        wanted: int | None = None
        async with aclosing(self._feed.tape(host_id, place, last, takes_over=takes_over)) as items:
            async for item in items:
                if isinstance(item, Sign):
                    wanted = item.next_id if wanted is None else wanted
                    if item.ended:
                        tape.whole = True
                        self._threads.attempt_ended(place.run_id)  # worth a look
                        return True
                else:
                    self._streams.take(place, item)
                if tape.next_id >= (wanted or 0):
                    self._streams.caught_up(place)
                    if until_there:
                        return True
        return takes_over > 0 and tape.next_id >= (wanted or 0)

    async def _catch_up(self, place: TapeId, run: Run) -> None:
        """The run has ended: the rest of its events, where another host had it."""
        host_id, tape = _last_host(run), self._streams.open(place)
        if self._peers is None or not host_id or host_id == self._peers.host_id or tape.closed or tape.whole:
            return
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await self._bring(host_id, place, until_there=True)
        except (AgentVisorError, TimeoutError) as error:
            log.info("events_lost", run=run.run_id, host=host_id, error=str(error))
            self._streams.lost(place)

    # --- an attempt that begins here ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def beginning(self, thread_id: ThreadId, run: Run) -> AsyncGenerator[None]:
        """The run's last attempt begins here, and ends with the context.

        What an earlier one told elsewhere is taken over meanwhile: the attempt does not wait for that, its events do.
        """
        attempt, place = run.attempts[-1], TapeId(thread_id, run.run_id)
        before = _last_host(run, but=1)
        elsewhere = self._peers is not None and before not in ("", self._peers.host_id)
        self._streams.attempt_started(place, attempt.attempt, attempt.scheduled_at_ms, takes_over=elsewhere)
        if stir := self._stirs.pop(thread_id, None):
            stir.set()
        taking = self._take_over(before, place, attempt.attempt) if elsewhere else None
        task = asyncio.create_task(taking, name=f"take over {place.run_id}") if taking else None
        try:
            yield
        finally:
            if task is not None:
                await task

    async def _take_over(self, host_id: str, place: TapeId, attempt: int) -> None:
        whole = False
        try:
            async with asyncio.timeout(_TAKE_OVER_SECONDS):
                whole = await self._bring(host_id, place, takes_over=attempt)
        except (AgentVisorError, TimeoutError) as error:
            log.info("events_lost", run=place.run_id, host=host_id, error=str(error))
        finally:
            self._streams.taken_over(place, whole=whole)


def _last_host(run: Run, *, but: int = 0) -> str:
    """Which host had the last attempt that any had; `but`: without so many attempts at the end."""
    attempts = run.attempts[: len(run.attempts) - but]
    return next((one.host_id for one in reversed(attempts) if one.host_id), "")
