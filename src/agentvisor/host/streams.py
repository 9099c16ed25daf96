"""Events of runs, kept on this host for a while so that a reader who was cut off goes on where it was.

A tape holds the events of a run that lives here, or a copy of what another host's tape holds (run_events.py): the same
events have the same numbers everywhere, and the numbers of a run only grow, whatever host its attempts live on. A
reader asks for what comes after a number, and is told where that is gone. One event loop; nothing here waits for a
reader.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from time import time

from agentvisor.host.metrics import STREAM_EVENTS
from agentvisor.host.tape import Event, Gap, Held, StreamLimits, Tape, TapeId

__all__ = ["ALL", "METADATA", "Event", "Gap", "RunStreams", "StreamLimits", "TapeId"]

METADATA = "metadata"
"""The mode of the event that says which attempt begins."""

ALL = -1
"""Number before every event."""


class RunStreams:
    """The tapes of this host."""

    def __init__(self, limits: StreamLimits | None = None, clock: Callable[[], float] = time) -> None:
        self._limits = limits or StreamLimits()
        self._clock = clock
        self._tapes: OrderedDict[TapeId, Tape] = OrderedDict()
        self._bytes = 0
        self._given_back: dict[TapeId, asyncio.Event] = {}

    # --- tapes -----------------------------------------------------------------------------------------------------

    def open(self, run: TapeId) -> Tape:
        """A run was accepted or started here, or somebody waits for its events; more than once is fine."""
        tape = self._tapes.get(run)
        if tape is None:
            tape = self._tapes[run] = Tape()
            if len(self._tapes) > self._limits.runs:
                # Runs that other hosts took leave empty tapes.
                quiet = (known for known, one in self._tapes.items() if not one.items and known != run)
                self.forget(next(quiet, next(iter(self._tapes))))
        return tape

    def get(self, run: TapeId) -> Tape | None:
        """A run's tape; None where this host has none."""
        return self._tapes.get(run)

    def close(self, run: TapeId) -> None:
        """The run has ended, durably: readers end after what is left."""
        tape = self._tapes.get(run)
        if tape is None or tape.closed:
            return
        tape.closed = True
        self._tapes.move_to_end(run)
        self._make_room()
        tape.tell()

    def kept(self, run: TapeId) -> list[Event]:
        """The events of the run that are kept here, as of now."""
        tape = self._tapes.get(run)
        return [] if tape is None else [one for one in tape.items if isinstance(one, Event)]

    def is_whole(self, run: TapeId) -> bool:
        """Whether all that the run has told is here, as far as it is kept: it has ended, and no copy is under way."""
        tape = self._tapes.get(run)
        return tape is not None and tape.closed

    def forget(self, run: TapeId) -> None:
        """Drop a run's events; who reads them ends."""
        tape = self._tapes.pop(run, None)
        if tape is not None:
            tape.closed = True
            self._bytes -= tape.bytes
            tape.tell()

    def heard(self, run: TapeId) -> int:
        """The last attempt of the run whose events came to this host; 0 where none did."""
        tape = self._tapes.get(run)
        return 0 if tape is None else tape.attempt

    # --- attempts that live here -------------------------------------------------------------------------------------

    def attempt_started(self, run: TapeId, attempt: int, scheduled_at_ms: int = 0, *, takes_over: bool = False) -> None:
        """An attempt begins here; its metadata event comes once.

        Args:
            run: the attempt's run.
            attempt: its number.
            scheduled_at_ms: on Temporal's clock, the one that all hosts share. What is not a continuation of an earlier
                tape is numbered from there, in microseconds: higher than all that another host has counted since an
                earlier moment.
            takes_over: the earlier attempts were another host's. Events wait for their numbers until `taken_over`.
        """
        tape = self.open(run)
        if attempt <= tape.attempt:
            return
        tape.attempt = tape.live = attempt
        tape.behind = False
        # After the moment itself: that is the number of the end of the run before (http/thread_stream.py).
        tape.base = scheduled_at_ms * 1000 + 1 if scheduled_at_ms else self._now()
        if takes_over:
            tape.held = []
        data = b'{"run_id":"%s","attempt":%d}' % (run.run_id.encode(), attempt)
        self.publish(run, attempt, METADATA, (), data)

    def taken_over(self, run: TapeId, *, whole: bool) -> None:
        """What was to be had of the earlier attempts' events is on the tape; `whole`: all of them."""
        tape = self._tapes.get(run)
        if tape is None or tape.held is None:
            return
        held, tape.held = tape.held, None
        if not whole:
            self._add(tape, Gap(max(tape.base, tape.next_id + 1)))
        for event in held:
            self._number(tape, event)
        tape.tell()

    def publish(self, run: TapeId, attempt: int, mode: str, namespace: Sequence[str], data: bytes) -> None:
        """Add an event. Never blocks: what is over the limits falls off the tape's other end."""
        tape = self.open(run)
        if tape.closed or attempt < tape.attempt:
            return  # an attempt that lost its run still talks
        STREAM_EVENTS.inc()
        event = (attempt, mode, tuple(namespace), data, self._now() // 1000)
        if tape.held is not None and len(tape.held) < self._limits.events:
            tape.held.append(event)
            return
        self.taken_over(run, whole=False)  # so many are held that nobody can wait any longer
        self._tapes.move_to_end(run)
        self._number(tape, event)
        tape.tell()

    def attempt_over(self, run: TapeId, attempt: int, *, given_back: bool) -> None:
        """The attempt does not live here any more; `given_back`: another host goes on with the run."""
        tape = self._tapes.get(run)
        if tape is None or tape.live != attempt:
            return
        tape.live = 0
        tape.behind = not tape.closed
        if given_back and tape.items:
            self._given_back[run] = asyncio.Event()
        tape.tell()

    def superseded(self, run: TapeId, attempt: int) -> None:
        """Another host has begun this attempt and takes over the tape: what an earlier one says counts no more."""
        tape = self._tapes.get(run)
        if tape is not None and attempt > tape.attempt:
            self.taken_over(run, whole=False)
            tape.attempt, tape.live, tape.behind = attempt, 0, True
            tape.tell()

    def was_taken(self, run: TapeId) -> None:
        """Another host has the whole tape."""
        if taken := self._given_back.get(run):
            taken.set()

    async def until_taken(self) -> None:
        """Wait until other hosts have the tapes of all the runs that were given back."""
        await asyncio.gather(*(one.wait() for one in self._given_back.values()))

    # --- copies of other hosts' tapes --------------------------------------------------------------------------------

    def take(self, run: TapeId, item: Event | Gap) -> None:
        """Add what another host's tape holds next; what is here already is not added again."""
        tape = self.open(run)
        if tape.closed:
            return
        if item.id >= tape.next_id:
            self._add(tape, item)
            tape.tell()

    def follow(self, run: TapeId) -> None:
        """Somebody reads a run that may live elsewhere: what is here is not all, until `caught_up` says so."""
        tape = self.open(run)
        tape.behind = not tape.live and not tape.closed

    def caught_up(self, run: TapeId) -> None:
        """All that the other host's tape holds is here."""
        tape = self._tapes.get(run)
        if tape is not None and tape.behind:
            tape.behind = False
            tape.tell()

    def lost(self, run: TapeId) -> None:
        """What comes next on the run's tape was another host's, and is gone with it."""
        tape = self.open(run)
        if tape.items and not tape.closed:
            self._add(tape, Gap(tape.next_id + 1))
            tape.tell()

    def _number(self, tape: Tape, event: Held) -> None:
        self._add(tape, Event(tape.next_id or tape.base or self._now(), *event))

    def _add(self, tape: Tape, item: Event | Gap) -> None:
        before = tape.bytes
        tape.add(item)
        while tape.items and (len(tape.items) > self._limits.events or tape.bytes > self._limits.bytes):
            tape.drop_oldest()
        self._bytes += tape.bytes - before
        if self._bytes > self._limits.total_bytes:
            self._make_room()

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    # --- readers -----------------------------------------------------------------------------------------------------

    async def subscribe(self, run: TapeId, after: int | None) -> AsyncGenerator[Event | Gap]:
        """The events after a number, then what comes, until the run has ended; a `Gap` where some are missing.

        Args:
            run: a run; where this host has never heard of it, nothing comes.
            after: number of the last event seen; None or `ALL`: from the first that is kept.
        """
        tape = self._tapes.get(run)
        if tape is None:
            return
        fresh = after is None or after == ALL
        place = tape.dropped if fresh else None
        while True:
            news = tape.news
            if place is None:
                found = tape.place_after(after or 0)
                if found is None and not tape.closed:
                    await news.wait()
                    continue
                place, gap = found or (tape.dropped, None)
                if gap is not None:
                    yield gap
                continue
            if place < tape.dropped:
                place = tape.dropped
                yield Gap(tape.first_id)
                continue
            if place < tape.dropped + len(tape.items):
                item = tape.items[place - tape.dropped]
                place += 1
                # What was lost before the first event that is kept concerns those who have seen something.
                if isinstance(item, Event) or not fresh:
                    yield item
                fresh = False
                continue
            if tape.closed:
                return
            await news.wait()

    def _make_room(self) -> None:
        """Drop ended runs, the longest ended first; then the events of the runs that were quiet for longest."""
        ended = deque(run for run, tape in self._tapes.items() if tape.closed)
        while ended and (len(ended) > self._limits.ended_runs or self._bytes > self._limits.total_bytes):
            self.forget(ended.popleft())
        for tape in self._tapes.values():
            while tape.items and self._bytes > self._limits.total_bytes:
                self._bytes -= tape.drop_oldest()
