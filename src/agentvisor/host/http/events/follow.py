"""All that happens on a thread, run after run, as numbered events: what is kept of it, then what comes.

Every reader reads each run from its beginning, so that all of them are told the same under the same numbers, and leaves
out what its client has. Where events are missing (they fell off the tape, or were a host's that is gone), it says so,
and tells the values as they are now. A run's last word is told once its end is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from agentvisor.core.errors import NotFound, Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.host.http.events import numbers
from agentvisor.host.http.events.numbers import Numbers
from agentvisor.host.http.events.told import Frame, Missed, Told
from agentvisor.host.http.events.translate import Translator, requested
from agentvisor.host.http.json import decode
from agentvisor.host.http.open_interrupts import look
from agentvisor.host.http.reading import values_shown
from agentvisor.host.http.services import Services
from agentvisor.host.http.shapes import output_json, run_error
from agentvisor.host.metrics import STREAM_GAPS
from agentvisor.host.render_typed import Json
from agentvisor.host.streams import METADATA, Event, Gap, TapeId

_Read = TypeVar("_Read")

_RECENT = 10
"""Runs of a thread that are brought from other hosts where they have ended."""

_BEFORE = 2
"""Numbers below an event for what is told in the place of those before it."""

_AT_ONCE = 50
"""Events that are translated in one go."""

_PAUSE = 1.0
"""Seconds between two looks while Temporal does not answer."""


class Follower:
    """One client that follows one thread."""

    def __init__(self, services: Services, thread_id: ThreadId, since: int | None = None) -> None:
        self.services = services
        self.thread_id = thread_id
        self.placed: asyncio.Future[Missed | None] = asyncio.get_running_loop().create_future()
        """Once the first of what comes is known: whether something before it is missing."""
        self._since = since or 0
        self._numbers = Numbers()
        self._followed: set[RunId] = set()

    async def frames(self) -> AsyncGenerator[Frame | Missed]:
        """Events from after what the client has, without an end; it ends where the thread is deleted."""
        existed = False
        with self.services.news.watching(self.thread_id) as watch:
            while True:
                watch.begin()
                thread = await self._look()
                if thread is None and existed:
                    return
                existed = existed or thread is not None
                run = self._next(thread)
                if thread is None or run is None:
                    self._place(None)
                    await watch.wait()
                    continue
                self._followed.add(run.run_id)
                async for frame in self._run(run):
                    self._place(frame if isinstance(frame, Missed) else None)
                    yield frame

    def _place(self, missed: Missed | None) -> None:
        if not self.placed.done():
            self.placed.set_result(missed)

    async def _look(self) -> Thread | None:
        """The thread; None while there is none."""
        try:
            return await _patiently(lambda: self.services.threads.get(self.thread_id))
        except NotFound:
            return None

    def _next(self, thread: Thread | None) -> Run | None:
        for run in _agent_runs(thread) if thread is not None else ():
            if run.run_id not in self._followed:
                return run
        return None

    # --- one run ----------------------------------------------------------------------------------------------------

    async def _run(self, run: Run) -> AsyncGenerator[Frame | Missed]:
        reader = _RunReader(self, run)
        try:
            async for frame in reader.frames():
                if isinstance(frame, Missed) or frame.seq > self._since:
                    yield frame
        except NotFound:
            return  # it was deleted, or its thread was

    @property
    def since(self) -> int:
        """Number of the last event that the client had when it came."""
        return self._since

    @property
    def numbers(self) -> Numbers:
        """The numbers that it gives out."""
        return self._numbers


class _RunReader:
    """Reads one run for a follower."""

    def __init__(self, follower: Follower, run: Run) -> None:
        self._follower = follower
        self._services = follower.services
        self._numbers = follower.numbers
        self._run = run
        self._tape_id = TapeId(follower.thread_id, run.run_id)
        self._translator = Translator(run.spec.agent)
        self._began = False
        self._missing = False
        self._attempt = 0

    async def frames(self) -> AsyncGenerator[Frame | Missed]:
        """The run from its beginning, as far as it is kept, to its end."""
        run, streams = self._run, self._services.streams
        if run.status.terminal and numbers.after_end(_ended_at(run)) <= self._follower.since:
            self._numbers.pass_by(numbers.after_end(_ended_at(run)))
            return
        if run.status.terminal and (streams.is_whole(self._tape_id) or not await self._is_recent()):
            # No more comes, whatever host it ran on.
            streams.close(self._tape_id)
            async for frame in self._tape():
                yield frame
            ended = run
        else:
            async with self._services.events.following(self._follower.thread_id, run.run_id) as ending:
                async for frame in self._tape():
                    yield frame
                ended = await ending
        async for frame in self._last_words(ended):
            yield frame

    async def _is_recent(self) -> bool:
        """Whether other hosts are asked for what they have of the run, which has ended."""
        thread = await _patiently(lambda: self._services.threads.get(self._follower.thread_id))
        return self._run.run_id in [one.run_id for one in _agent_runs(thread)[-_RECENT:]]

    async def _tape(self) -> AsyncGenerator[Frame | Missed]:
        read = 0
        async for event in self._services.streams.subscribe(self._tape_id, None):
            read += 1
            if read % _AT_ONCE == 0:
                # What is kept comes without a wait, and nobody else should wait for all of it.
                await asyncio.sleep(0)
            if isinstance(event, Gap):
                begins = () if self._began else (self._translator.began(),)
                under_way, self._began = self._began, True
                async for frame in self._gap(numbers.of_place(event.next_id), under_way=under_way, also=begins):
                    yield frame
                continue
            if not self._began:
                async for frame in self._beginning(event):
                    yield frame
            self._attempt = max(self._attempt, event.attempt)
            for place, told in enumerate(self._translated(event)):
                yield self._frame(told, numbers.of_place(event.id) + place, event, place)

    async def _beginning(self, event: Event) -> AsyncGenerator[Frame | Missed]:
        """What comes before the first event that is kept, where that is not the run's first."""
        self._began = True
        if event.mode == METADATA and event.attempt == 1:
            return
        begins = () if event.mode == METADATA else (self._translator.began(),)
        async for frame in self._gap(numbers.of_place(event.id), under_way=False, also=begins):
            yield frame

    async def _gap(
        self, following: int, *, under_way: bool, also: Sequence[Told] = ()
    ) -> AsyncGenerator[Frame | Missed]:
        """Events before that number are missing: say so to a client that goes on, and tell what they have come to."""
        missed = self._missed(following - _BEFORE, under_way=under_way)
        if missed is not None:
            STREAM_GAPS.labels("dropped").inc()
            yield missed
        values = await self._current_values() if await self._is_last() else None
        told = [*also] if values is None else [*also, Told("values", values, name=f"values|{following}")]
        for one in told:
            # They take the place of what is missing, in numbers too.
            yield self._named(one, self._run.updated_at_ms, wanted=following - _BEFORE)

    def _missed(self, available: int, *, under_way: bool) -> Missed | None:
        """What a client is told that has seen what came before; one that has seen nothing misses nothing."""
        self._missing = True
        since = max(self._follower.since, self._numbers.last) if under_way else self._follower.since
        return Missed(since, available) if under_way or 0 < since < available - 1 else None

    def _translated(self, event: Event) -> Iterator[Told]:
        try:
            data = decode(event.data, "an event")
        except ValueError:
            return iter(())  # nothing that the protocol could carry
        return self._translator.event(event.mode, event.namespace, data)

    # --- its end ----------------------------------------------------------------------------------------------------

    async def _last_words(self, run: Run) -> AsyncGenerator[Frame | Missed]:
        ended_ms = _ended_at(run)
        first, last = numbers.of_end(ended_ms), numbers.after_end(ended_ms)
        if self._began:
            if 0 < self._attempt < len(run.attempts) and run.attempts[-1].started_at_ms:
                # The rest of it was another host's.
                missed = self._missed(first, under_way=True)
                if missed is not None:
                    yield missed
        else:
            # Nothing of it is kept here. Of the last run of its thread it is told what has come of it.
            missed = self._missed(first, under_way=False) if run.attempts else None
            if missed is not None:
                yield missed
            if not await self._is_last():
                self._numbers.pass_by(last)
                return
            yield self._named(self._translator.began(), run.created_at_ms, wanted=first)
        for told in [*await self._values(run), *self._translator.ended(), *await self._questions(run)]:
            yield self._named(told, ended_ms, wanted=first)
        status, error = await self._status(run)
        *below, root = self._translator.end(status, error)
        for told in below:
            yield self._named(told, ended_ms, wanted=first)
        # Its number follows from the time alone: who has seen it has seen all of the run.
        yield self._named(root, ended_ms, wanted=last)

    async def _values(self, run: Run) -> list[Told]:
        """What the run came to, where it has not told that itself, or where that is missing."""
        if not self._missing and self._translator.valued:
            return []
        whole = await _patiently(lambda: self._services.threads.get_run(self._follower.thread_id, run.run_id))
        if whole.output:
            values = output_json(whole)
        elif (self._missing or run.status is RunStatus.SUCCESS) and await self._is_last():
            values = await self._current_values()
        else:
            return []
        return [] if values is None or values == {} else [Told("values", values, name="values|end")]

    async def _current_values(self) -> Json:
        async def shown() -> Json:
            thread = await self._services.threads.get(self._follower.thread_id)
            values, _ = await values_shown(self._services, thread)
            return values

        return await _patiently(shown)

    async def _is_last(self) -> bool:
        """Whether what the thread holds is this run's: none that came after it has begun."""
        thread = await _patiently(lambda: self._services.threads.get(self._follower.thread_id))
        runs = _agent_runs(thread)
        places = [at for at, run in enumerate(runs) if run.run_id == self._run.run_id]
        return bool(places) and all(run.status is RunStatus.PENDING for run in runs[places[0] + 1 :])

    async def _questions(self, run: Run) -> list[Told]:
        """What waits and was not told yet: frameworks other than LangGraph ask beside their events."""
        if not run.paused or not await self._is_last():
            return []
        found = await _patiently(lambda: look(self._services, self._follower.thread_id))
        told = self._translator.asked
        return [requested(one, each.value) for one, each in found.open.items() if one not in told]

    async def _status(self, run: Run) -> tuple[str, str | None]:
        error = run_error(run)
        if isinstance(error, dict):
            return "failed", str(error.get("message") or error.get("error") or "")
        if run.status is RunStatus.INTERRUPTED:
            return "interrupted", None
        asks = bool(self._translator.asked) or bool(await self._questions(run))
        return ("interrupted" if asks else "completed"), None

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _frame(self, told: Told, wanted: int, event: Event, place: int) -> Frame:
        seq = self._numbers.next(wanted)
        run_id = self._run.run_id
        named = f"synth:{run_id}:{told.name}" if told.name else f"{run_id}:{event.id}-{place}"
        return Frame(seq, named, told, event.at_ms or event.id // 1000)

    def _named(self, told: Told, at_ms: int, *, wanted: int) -> Frame:
        seq = self._numbers.next(wanted)
        run_id = self._run.run_id
        named = f"synth:{run_id}:{told.name}" if told.name else f"{run_id}:end-{seq}"
        return Frame(seq, named, told, at_ms)


async def _patiently(read: Callable[[], Awaitable[_Read]]) -> _Read:
    """What is read, once Temporal answers."""
    while True:
        try:
            return await read()
        except Unavailable:
            await asyncio.sleep(_PAUSE)


def _agent_runs(thread: Thread) -> list[Run]:
    return [run for run in thread.runs.values() if run.is_agent]


def _ended_at(run: Run) -> int:
    ended = [one.ended_at_ms for one in run.attempts if one.ended_at_ms]
    return ended[-1] if ended else run.updated_at_ms


def applied_through(thread: Thread) -> int:
    """The last number of the runs that have ended before the first that has not."""
    last = 0
    for run in _agent_runs(thread):
        if not run.status.terminal:
            break
        last = numbers.after_end(_ended_at(run))
    return last
