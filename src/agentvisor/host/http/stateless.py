"""Runs without a thread of the caller: each gets one of its own, deleted afterwards unless it is to be kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Body
from pydantic import Field, model_validator
from starlette.responses import Response

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.lifetimes import Lifetime
from agentvisor.host.config import Config
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.run_create import RunCreate
from agentvisor.host.http.run_start import Prepared, Started, prepared, streaming, waiting
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


class BatchedRun(RunCreate):
    """A run of a batch, as LangGraph's JavaScript client sends it too."""

    assistantId: str | None = Field(  # noqa: N815 - that client's own
        default=None, description="The same as assistant_id, which is sent with it."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> BatchedRun:
        if self.assistantId not in (None, self.assistant_id):
            raise ValueError("assistantId and assistant_id differ: leave one of them out")
        return self


_LARGEST_BATCH = 1000
_AT_A_TIME = 16

Batch = Annotated[list[BatchedRun], Body(min_length=1, max_length=_LARGEST_BATCH)]


@router.post("/batch")
async def create_runs(body: Batch, services: Served) -> JsonResponse:
    """Start runs in the background, each on a thread of its own; none, where one of them is refused."""
    ready = [await _prepared(services, one) for one in body]
    places = asyncio.Semaphore(_AT_A_TIME)

    async def begin(one: Prepared) -> Started:
        async with places:
            return await one.start()

    tried = await asyncio.gather(*map(begin, ready), return_exceptions=True)
    started = [one for one in tried if isinstance(one, Started)]
    if failed := next((one for one in tried if isinstance(one, BaseException)), None):
        # Also those of which nobody knows: the caller will send the whole batch again.
        for one in ready:
            services.afterwards.begin(f"undo batched run {one.thread_id}", _undone(services, one.thread_id))
        raise failed
    for one, run in zip(body, started, strict=True):
        cleaning = _cleaning(services, one, run)
        if cleaning is not None:
            cleaning()
    return JsonResponse([run_json(one.thread_id, one.run) for one in started])


async def _undone(services: Services, thread_id: ThreadId) -> None:
    with suppress(NotFound):
        await services.threads.delete(thread_id)


async def _start(services: Services, body: RunCreate) -> Started:
    return await (await _prepared(services, body)).start()


async def _prepared(services: Services, body: RunCreate) -> Prepared:
    """The run's id is its thread's: who knows the one finds the other."""
    named = str(uuid4())
    kept = body.on_completion == "keep"
    return await prepared(
        services,
        body,
        ThreadId(named),
        stateless=True,
        run_id=RunId(named),
        lifetime=None if kept else brief(services.config),
    )


def brief(config: Config) -> Lifetime:
    """Of a thread that is deleted after its run: where no host is left to do that, it does it itself, by the clock."""
    return Lifetime(max(1, round(config.temporal.stateless_grace.total_seconds() * 1000)), while_waiting=True)


def _cleaning(services: Services, body: RunCreate, started: Started) -> Callable[[], object] | None:
    """Deletes the thread at once after its run, in the background: its own clock does, where this host is gone."""
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
