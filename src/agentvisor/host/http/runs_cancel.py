"""Cancels many runs at once: some of a thread, or all that wait or run, of every thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from agentvisor.core.errors import AgentVisorError, Conflict, NotFound
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.runs import CancelAction, RunStatus
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.http.json import JsonRoute
from agentvisor.host.http.paths import RunInPath, ThreadInPath
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.unreadable import UNREADABLE

router = APIRouter(prefix="/runs", tags=["runs"], route_class=JsonRoute)

_MOST_THREADS = 10_000
_AT_A_TIME = 16
_STATUSES = {
    "pending": {RunStatus.PENDING},
    "running": {RunStatus.RUNNING},
    "all": {RunStatus.PENDING, RunStatus.RUNNING},
}


class RunsCancel(BaseModel):
    """Which runs: those of a status, or some of a thread."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["pending", "running", "all"] | None = None
    thread_id: ThreadInPath | None = None
    run_ids: Annotated[list[RunInPath], Field(max_length=1000)] | None = None

    @model_validator(mode="after")
    def _names_them_once(self) -> RunsCancel:
        of_thread = self.thread_id is not None or self.run_ids is not None
        if self.status is None and (self.thread_id is None or self.run_ids is None):
            raise ValueError("give status, or thread_id and run_ids")
        if self.status is not None and of_thread:
            raise ValueError("status is for runs of all threads: leave out thread_id and run_ids")
        return self


@router.post("/cancel", status_code=204)
async def cancel_runs(
    body: RunsCancel, services: Served, *, action: Literal["interrupt", "rollback"] = "interrupt"
) -> Response:
    """Cancel them, durably. 404 where none of them waits or runs."""
    asked = CancelAction[action.upper()]
    if body.status is not None:
        cancelled = await _everywhere(services, body.status, asked)
    else:
        cancelled = await _of_thread(services, body.thread_id or ThreadId(""), body.run_ids or (), asked)
    if not cancelled:
        raise NotFound("no such run waits or runs")
    return Response(status_code=204)


async def _everywhere(services: Services, status: str, action: CancelAction) -> int:
    """In the threads that Temporal's visibility knows to be busy; it lags by milliseconds."""
    found = await services.threads.search(
        metadata={}, status=ThreadStatus.BUSY.value, ids=None, limit=_MOST_THREADS + 1, offset=0
    )
    wanted, places = _STATUSES[status], asyncio.Semaphore(_AT_A_TIME)
    unreadable = list[AgentVisorError]()

    async def one(thread_id: ThreadId) -> int:
        async with places:
            try:
                thread = await services.threads.get(thread_id)
            except NotFound:
                return 0
            except UNREADABLE as error:
                unreadable.append(error)
                return 0
            chosen = [run.run_id for run in thread.runs.values() if run.is_agent and run.status in wanted]
            # The newest first: with the one that runs gone, the next would begin.
            return await _of_thread(services, thread_id, chosen[::-1], action)

    cancelled = sum(await asyncio.gather(*map(one, found[:_MOST_THREADS])))
    if unreadable:
        raise unreadable[0]  # all others are cancelled, and this one was not
    if len(found) > _MOST_THREADS:
        raise Conflict(f"{cancelled} runs were cancelled, and more than {_MOST_THREADS} threads were busy: ask again")
    return cancelled


async def _of_thread(services: Services, thread_id: ThreadId, run_ids: Sequence[RunId], action: CancelAction) -> int:
    cancelled = 0
    for run_id in run_ids:
        try:
            await services.threads.cancel_run(thread_id, run_id, action)
        except NotFound:
            continue  # it has ended, or never was
        cancelled += 1
    return cancelled
