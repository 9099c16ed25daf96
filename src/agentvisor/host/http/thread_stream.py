"""The events of all runs of a thread, one run after the other, those that start later included.

A run's events have their numbers, and the numbers of a later run are higher: so one number says where a reader was.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast, get_args

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from agentvisor.core.errors import AgentVisorError, InvalidInput, NotFound
from agentvisor.core.ids import ROOT, RunId, ThreadId
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.thread import Thread
from agentvisor.host.http.json import JsonRoute, encode
from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.outcome import failure
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import latest_state
from agentvisor.host.http.run_stream import RunReader
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.shapes import modes_of
from agentvisor.host.http.sse import HEADERS, ServerEvent, wire
from agentvisor.host.http.thread_watch import changes
from agentvisor.host.render import shown_metadata
from agentvisor.host.streams import METADATA

router = APIRouter(prefix="/threads/{thread_id}/stream", tags=["threads"], route_class=JsonRoute)

Mode = Literal["run_modes", "lifecycle", "state_update"]
_NUMBER = re.compile(r"\d{1,18}")
_REDIS_NUMBER = re.compile(r"(\d{1,15})-(\d{1,15}|\*)")
"""LangGraph's form: milliseconds and a count."""


@router.get("", dependencies=[COUNTED])
async def join_thread_stream(
    thread_id: ThreadInPath,
    services: Served,
    *,
    stream_modes: Annotated[list[str] | None, Query(description="run_modes, lifecycle, state_update")] = None,
    stream_mode: Annotated[list[str] | None, Query(description="The same; LangGraph's client writes it so.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """What happens on a thread, as it happens; from after Last-Event-ID, or all with `-`. It ends with the thread."""
    modes, after = _modes([*(stream_modes or ()), *(stream_mode or ())]), _after(last_event_id)
    await services.threads.get(thread_id)
    reader = ThreadReader(services, thread_id, modes, after)
    return LiveResponse(wire(reader.events(), services.heartbeat), "text/event-stream", HEADERS)


@dataclass(slots=True)
class ThreadReader:
    """One client that reads one thread."""

    services: Services
    thread_id: ThreadId
    modes: Sequence[Mode]
    after: int | None = None
    """Number of the last event that the client has; None: it wants what happens from now on."""
    _told: set[RunId] = field(default_factory=set[RunId])
    _head: str | None = None
    """The checkpoint at which the thread stood; None before the first look."""
    _update: int | None = None
    """Number of the last update that the client has, or had no wish to have; None before the first look."""

    async def events(self) -> AsyncGenerator[ServerEvent]:
        """Each run's events and its end, and the changes between runs."""
        try:
            async with aclosing(changes(self.services, self.thread_id)) as threads:
                async for thread in threads:
                    if self._head is None and self.after is None:
                        self._told = {run.run_id for run in thread.runs.values() if run.status.terminal}
                    async for event in self._of(thread):
                        yield event
        except AgentVisorError as error:
            yield ServerEvent("error", encode(failure(error)))

    async def _of(self, thread: Thread) -> AsyncGenerator[ServerEvent]:
        for run in [one for one in thread.runs.values() if one.is_agent and one.attempts]:
            if run.run_id in self._told:
                continue
            self._told.add(run.run_id)
            end = run.updated_at_ms * 1000
            if not run.status.terminal or self.after is None or end > self.after:
                async for event in self._run(run):
                    yield event
        async for event in self._updated(thread):
            yield event

    async def _run(self, run: Run) -> AsyncGenerator[ServerEvent]:
        began = run.attempts[0].scheduled_at_ms * 1000
        after = None if self.after is None or self.after <= began else self.after
        try:
            modes = modes_of(await self.services.threads.get_run(self.thread_id, run.run_id))
            reader = RunReader(self.services, self.thread_id, run.run_id, modes, after)
            async with aclosing(reader.events()) as events:
                async for event in events:
                    if "run_modes" in self.modes or ("lifecycle" in self.modes and event.event == METADATA):
                        yield event
            ended = await self.services.threads.get_run(self.thread_id, run.run_id)
        except NotFound:
            return  # its run was rolled back or deleted
        if "run_modes" in self.modes or "lifecycle" in self.modes:
            data = encode({"status": "run_done", "run_id": run.run_id})
            yield ServerEvent(METADATA, data, ended.updated_at_ms * 1000)

    async def _updated(self, thread: Thread) -> AsyncGenerator[ServerEvent]:
        """The state after a change that no run has made; of several since the last look, after the last."""
        updates = [run for run in thread.runs.values() if run.is_update]
        number = max((run.updated_at_ms * 1000 for run in updates if run.status is RunStatus.SUCCESS), default=0)
        if self._update is None:
            self._update = number if self.after is None else self.after
        if not all(run.status.terminal for run in updates):
            return  # it counts with its end
        head = thread.store.get(ROOT)
        at = "" if head is None else head.checkpoint.checkpoint_id
        is_news, is_moved = number > self._update, self._head not in (None, at)
        self._head, self._update = at, max(number, self._update)
        if head is None or not (is_news or is_moved) or "state_update" not in self.modes:
            return
        if shown_metadata(head.checkpoint.metadata).get("source") == "update":
            state = await latest_state(self.services, self.thread_id, subgraphs=False)
            # What a client outside has written with a graph of its own is no update of ours, and has no number.
            data = encode({"state": state, "thread_id": self.thread_id})
            yield ServerEvent("state_update", data, number if is_news else None)


def _modes(asked: Sequence[str]) -> Sequence[Mode]:
    named = [one.strip() for each in asked for one in each.split(",")]
    for one in named:
        if one not in get_args(Mode):
            raise InvalidInput(
                f"stream mode {one[:80]!r} is none of a thread's: use {', '.join(get_args(Mode))}", field="stream_modes"
            )
    return cast("Sequence[Mode]", named or ["run_modes"])


def _after(last_event_id: str | None) -> int | None:
    if not last_event_id:
        return None
    if last_event_id == "-":
        return 0
    if _NUMBER.fullmatch(last_event_id):
        return int(last_event_id)
    if found := _REDIS_NUMBER.fullmatch(last_event_id):
        return int(found[1]) * 1000
    raise InvalidInput(
        f"Last-Event-ID {last_event_id[:80]!r} is no event's: send the id of the last event, or - for all",
        field="last-event-id",
    )
