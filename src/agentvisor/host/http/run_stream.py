"""A run's events as a client reads them, from the host that the run lives on to the end that is durable.

The stream ends only after the run's terminal status is in the thread's state, so that a client that asks then is told
the same. Where events are missing (another host has them, or they fell off the tape) it says so with a gap event, goes
on with what comes, and gives the final values.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from agentvisor.core.errors import AgentVisorError, Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import Run
from agentvisor.host.http.json import decode, encode
from agentvisor.host.http.messages import Accumulated
from agentvisor.host.http.outcome import as_it_left, failure, values_at_end
from agentvisor.host.http.reading import values_shown
from agentvisor.host.http.services import Services
from agentvisor.host.http.shapes import output_json, run_error
from agentvisor.host.http.sse import ServerEvent
from agentvisor.host.metrics import STREAM_GAPS
from agentvisor.host.render_typed import Json
from agentvisor.host.streams import METADATA, Event, Gap, TapeId


@dataclass(slots=True)
class RunReader:
    """One client that reads one run."""

    services: Services
    thread_id: ThreadId
    run_id: RunId
    modes: Sequence[str]
    """LangGraph's: `messages` are whole messages that grow, `messages-tuple` are chunks as they come."""
    after: int | None = None
    """Number of the last event that the client has."""
    _messages: Accumulated = field(default_factory=Accumulated)
    _missing: bool = False
    """The client has missed something, and was not told what it came to."""
    _valued: bool = False
    """Whether the agent itself has told values of its root, since the last gap: a plain agent never does."""

    async def events(self) -> AsyncGenerator[ServerEvent]:
        """Everything from the run's start, or from after what the client has, to the end."""
        async with self.services.events.following(self.thread_id, self.run_id) as ending:
            try:
                async for event in self._tape():
                    yield event
                for event in await self._final(await ending):
                    yield event
            except AgentVisorError as error:
                yield ServerEvent("error", encode(failure(error)))

    async def _tape(self) -> AsyncGenerator[ServerEvent]:
        adds_up = "messages" in self.modes and "messages-tuple" not in self.modes
        # Whole messages are made of all their chunks, those that the client has included.
        start = None if adds_up else self.after
        seen = self.after
        async for event in self.services.streams.subscribe(TapeId(self.thread_id, self.run_id), start):
            missed = isinstance(event, Gap) or (adds_up and seen is not None and event.id > seen + 1)
            if missed:
                number = event.id if isinstance(event, Gap) else event.id - 1
                for told in await self._gap(number, "events are no longer kept"):
                    yield told
            if isinstance(event, Gap):
                seen = None
                continue
            fresh = seen is None or event.id > seen
            for shown in self._shown(event):
                if fresh:
                    yield shown
            if fresh:
                seen = None

    def _shown(self, event: Event) -> list[ServerEvent]:
        """An event in the modes that were asked for; of several, the last carries the number."""
        if event.mode == METADATA:
            return [ServerEvent(METADATA, event.data, event.id)]
        if event.mode == "messages" and "messages-tuple" not in self.modes:
            return self._whole(event) if "messages" in self.modes else []
        if event.mode not in self.modes and event.mode != "messages":
            return []
        self._valued = self._valued or (event.mode == "values" and not event.namespace)
        return [ServerEvent(_named(event.mode, event), event.data, event.id)]

    def _whole(self, event: Event) -> list[ServerEvent]:
        try:
            added = self._messages.add(decode(event.data, "a message"))
        except ValueError:
            return []
        last = len(added) - 1
        return [
            ServerEvent(_named(name, event), encode(data), event.id if at == last else None)
            for at, (name, data) in enumerate(added)
        ]

    async def _gap(self, number: int, why: str) -> list[ServerEvent]:
        """What a client is told that cannot be told all: that it missed something, and what that has come to."""
        self._missing, self._valued = True, False
        STREAM_GAPS.labels("dropped").inc()
        told = [self._gap_event(why)]
        with suppress(Unavailable):  # then they come at the end
            values, _ = await values_shown(self.services, await self.services.threads.get(self.thread_id))
            if values is not None:
                told.append(ServerEvent("values", encode(values)))
                self._missing = False
        told[-1] = replace(told[-1], id=number)
        return told

    def _gap_event(self, why: str) -> ServerEvent:
        return ServerEvent("gap", encode({"run_id": self.run_id, "reason": why}))

    async def _final(self, run: Run) -> list[ServerEvent]:
        """The run's last words: the values of a plain agent or for a client who missed events, and the error."""
        events: list[ServerEvent] = []
        heard, attempts = self.services.streams.heard(TapeId(self.thread_id, self.run_id)), len(run.attempts)
        if heard == 0 or heard < attempts:
            metadata: dict[str, Json] = {"run_id": self.run_id, "attempt": max(1, attempts)}
            events.append(ServerEvent(METADATA, encode(metadata)))
            if attempts:
                self._missing = True
                STREAM_GAPS.labels("lost").inc()
                events.append(self._gap_event("the events went with the host that had them"))
        returned = "values" in self.modes and output_json(run) is not None
        if (self._missing or returned) and not self._valued:
            events.append(ServerEvent("values", encode(await self._values(run))))
        error = run_error(run)
        if error is not None:
            events.append(ServerEvent("error", encode(error)))
        return events

    async def _values(self, run: Run) -> Json:
        if run.output:
            return await values_at_end(self.services, self.thread_id, run)
        values, _ = await as_it_left(self.services, self.thread_id, run)
        return values


def _named(mode: str, event: Event) -> str:
    return "|".join((mode, *event.namespace))
