"""Runs without a thread of the caller: each gets one of its own, deleted afterwards unless it is to be kept."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from fastapi import APIRouter
from starlette.responses import Response

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.run_create import RunCreate
from agentvisor.host.http.run_start import Started, start, streaming, waiting
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.shapes import run_json

router = APIRouter(prefix="/runs", tags=["runs without a thread"], route_class=JsonRoute)


@router.post("")
async def create_run(body: RunCreate, services: Served) -> JsonResponse:
    """Start a run in the background on a thread of its own."""
    started = await _start(services, body)
    cleaning = _cleaning(services, body, started)
    if cleaning is not None:
        cleaning()
    # LangGraph's own form for runs in the background.
    return JsonResponse(
        run_json(started.thread_id, started.run), headers={"Content-Location": f"/runs/{started.run.run_id}"}
    )


@router.post("/wait")
async def wait_for_run(body: RunCreate, services: Served) -> Response:
    """Start a run on a thread of its own, and answer with the values that it ends with."""
    started = await _start(services, body)
    return waiting(services, started, _cleaning(services, body, started))


@router.post("/stream", dependencies=[COUNTED])
async def stream_run(body: RunCreate, services: Served) -> Response:
    """Start a run on a thread of its own, and send its events as they come."""
    started = await _start(services, body)
    return streaming(services, body, started, _cleaning(services, body, started))


async def _start(services: Services, body: RunCreate) -> Started:
    return await start(services, body, ThreadId(str(uuid4())), stateless=True)


def _cleaning(services: Services, body: RunCreate, started: Started) -> Callable[[], object] | None:
    """Deletes the thread once its run has ended, in the background."""
    if body.on_completion == "keep":
        return None

    async def clean() -> None:
        try:
            # Its webhook is told what the thread holds.
            await services.threads.until_told(started.thread_id, started.run.run_id)
            await services.threads.delete(started.thread_id)
        except NotFound:
            return  # deleted by somebody else

    return lambda: services.afterwards.begin(f"delete thread {started.thread_id}", clean())
