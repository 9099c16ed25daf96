"""Runs of a thread: started, awaited, streamed, joined, listed, cancelled."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import CancelAction
from agentvisor.host.http.json import JsonResponse, JsonRoute, encode
from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.outcome import failure, keeping_alive, outcome
from agentvisor.host.http.paths import RunInPath, ThreadInPath
from agentvisor.host.http.run_create import RunCreate, StreamMode
from agentvisor.host.http.run_start import canceller, start, streaming, waiting, where
from agentvisor.host.http.run_stream import RunReader
from agentvisor.host.http.selecting import selected
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.shapes import RUN_FIELDS, modes_of, run_json
from agentvisor.host.http.sse import HEADERS, ServerEvent, wire
from agentvisor.host.render_typed import Json
from agentvisor.host.streams import ALL

router = APIRouter(prefix="/threads/{thread_id}/runs", tags=["runs"], route_class=JsonRoute)

RunStatusName = Literal["pending", "running", "error", "success", "timeout", "interrupted"]


@router.post("")
async def create_run(thread_id: ThreadInPath, body: RunCreate, services: Served) -> JsonResponse:
    """Start a run in the background. When this answers, the run is durable."""
    started = await start(services, body, thread_id)
    return JsonResponse(run_json(thread_id, started.run), headers=started.headers())


@router.post("/wait")
async def wait_for_new_run(thread_id: ThreadInPath, body: RunCreate, services: Served) -> Response:
    """Start a run and answer with the values that it ends with."""
    return waiting(services, await start(services, body, thread_id))


@router.post("/stream", dependencies=[COUNTED])
async def stream_new_run(thread_id: ThreadInPath, body: RunCreate, services: Served) -> Response:
    """Start a run and send its events as they come."""
    return streaming(services, body, await start(services, body, thread_id))


@router.get("")
async def list_runs(
    thread_id: ThreadInPath,
    services: Served,
    *,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0)] = 0,
    status: RunStatusName | None = None,
    select: Annotated[list[str] | None, Query()] = None,
) -> JsonResponse:
    """The thread's runs, newest first."""
    fields = selected(select, RUN_FIELDS, "runs")
    kept = await services.threads.runs(thread_id)
    shown = [run for run in reversed(kept) if run.is_agent and not run.rolled_back]
    runs = [run_json(thread_id, run) for run in shown]
    found = [run for run in runs if status is None or run["status"] == status][offset : offset + limit]
    return JsonResponse([{name: run[name] for name in fields} for run in found])


@router.get("/{run_id}")
async def get_run(thread_id: ThreadInPath, run_id: RunInPath, services: Served) -> JsonResponse:
    """A run with its attempts."""
    return JsonResponse(run_json(thread_id, await services.threads.get_run(thread_id, run_id)))


@router.delete("/{run_id}", status_code=204)
async def delete_run(thread_id: ThreadInPath, run_id: RunInPath, services: Served) -> Response:
    """Delete a run with its checkpoints; one that has not ended is cancelled, and gone once it has."""
    await services.threads.cancel_run(thread_id, run_id, CancelAction.DELETE)
    return Response(status_code=204)


@router.post("/{run_id}/cancel")
async def cancel_run(
    thread_id: ThreadInPath,
    run_id: RunInPath,
    services: Served,
    *,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Cancel a run, durably: whatever happens, it is not started again. `wait`: answer once it has ended.

    `rollback`: the run and its checkpoints are gone, and the thread is as before it.
    """
    asked = CancelAction[action.upper()]
    await services.threads.cancel_run(thread_id, run_id, asked)
    if not wait:
        return Response(status_code=202)

    async def ended() -> Json:
        if asked is CancelAction.ROLLBACK:
            await services.threads.until_gone(thread_id, run_id)
        else:
            await services.threads.wait_run(thread_id, run_id)
        return {}

    location = where(thread_id, run_id, "join")
    return LiveResponse(keeping_alive(ended(), services.heartbeat), "application/json", location)


@router.get("/{run_id}/join")
async def join_run(
    thread_id: ThreadInPath, run_id: RunInPath, services: Served, *, cancel_on_disconnect: bool = False
) -> Response:
    """Wait for a run, and answer with the values that it ends with; that there is none is told there, as an error."""

    async def answer() -> Json:
        return await outcome(services, thread_id, await services.threads.wait_run(thread_id, run_id))

    leaving = canceller(services, thread_id, run_id) if cancel_on_disconnect else None
    location = where(thread_id, run_id, "join")
    return LiveResponse(keeping_alive(answer(), services.heartbeat), "application/json", location, leaving)


@router.get("/{run_id}/stream", dependencies=[COUNTED])
async def join_run_stream(
    thread_id: ThreadInPath,
    run_id: RunInPath,
    services: Served,
    *,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: bool = False,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """The events of a run: all that are kept of one that lives; of one that has ended, those after Last-Event-ID."""
    leaving = canceller(services, thread_id, run_id) if cancel_on_disconnect else None
    named = _named(stream_mode)
    query = f"?{urlencode([('stream_mode', mode) for mode in named])}" if named else ""
    location = where(thread_id, run_id, f"stream{query}")
    events = _events(services, thread_id, run_id, named, _after(last_event_id))
    pieces = wire(events, services.heartbeat)
    return LiveResponse(pieces, "text/event-stream", {**HEADERS, **location}, leaving)


async def _events(
    services: Services, thread_id: ThreadId, run_id: RunId, modes: Sequence[str], after: int | None
) -> AsyncGenerator[ServerEvent]:
    try:
        run = await services.threads.get_run(thread_id, run_id)
    except NotFound as error:
        yield ServerEvent("error", encode(failure(error)))
        return
    # LangGraph's client goes on without naming modes: then they are those that the run was started with.
    reader = RunReader(services, thread_id, run_id, modes or modes_of(run), None if after == ALL else after)
    if run.status.terminal and after is None:
        return
    async with aclosing(reader.events()) as events:
        async for event in events:
            yield event


def _named(asked: Sequence[str] | None) -> Sequence[str]:
    """The modes that a reader names; `InvalidInput`. A namespace after | is not part of a mode."""
    named = [one.partition("|")[0] for each in asked or () for one in each.split(",") if one]
    for one in named:
        if one not in get_args(StreamMode):
            raise InvalidInput(
                f"stream mode {one[:80]!r} is none of a run's: use {', '.join(get_args(StreamMode))}",
                field="stream_mode",
            )
    return named


def _after(last_event_id: str | None) -> int | None:
    """Number of the last event seen; one that no host gave means all."""
    if last_event_id is None:
        return None
    text = last_event_id.strip()
    return int(text) if text.isdecimal() and len(text) < 20 else ALL
