"""Agent Protocol's own names for what has others in LangGraph's API: agents are assistants, and a run goes by its id.

The run of a thread that was made for it has that thread's id, so that it is found by its own; another is found with its
thread, by LangGraph's names.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.http import runs
from agentvisor.host.http.agents import assistant, shown
from agentvisor.host.http.assistants_graph import get_schemas
from agentvisor.host.http.containing import contains
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.open_streams import COUNTED
from agentvisor.host.http.paths import RunInPath, ThreadInPath
from agentvisor.host.http.run_create import JsonObject
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.shapes import run_json
from agentvisor.host.http.unreadable import UNREADABLE
from agentvisor.host.render_typed import Json

router = APIRouter(tags=["agent protocol"], route_class=JsonRoute)

_MOST_THREADS = 1000
_AT_A_TIME = 16


class AgentSearch(BaseModel):
    """Which agents to list."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    metadata: JsonObject | None = None
    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, strict=True)


class RunSearch(BaseModel):
    """Which runs to list."""

    model_config = ConfigDict(extra="forbid")

    metadata: JsonObject | None = None
    status: Literal["pending", "running", "error", "success", "timeout", "interrupted"] | None = None
    thread_id: ThreadInPath | None = None
    agent_id: str | None = None
    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, strict=True)


@router.post("/agents/search")
async def search_agents(body: AgentSearch, services: Served) -> JsonResponse:
    """Agents by name and metadata."""
    found = await services.assistants.search(
        services.owner, metadata={**(body.metadata or {})}, graph_id=None, name=body.name
    )
    return JsonResponse([_agent(shown(one)) for one in found[body.offset : body.offset + body.limit]])


@router.get("/agents/{agent_id}")
async def get_agent(agent_id: str, services: Served) -> JsonResponse:
    """An agent."""
    return JsonResponse(_agent(shown(await assistant(services, agent_id))))


def _agent(one: dict[str, Json]) -> dict[str, Json]:
    capabilities: dict[str, Json] = {"ap.io.messages": False, "ap.io.streaming": True}
    return {
        "agent_id": one["assistant_id"],
        "name": one["name"],
        "description": one["description"] or "",
        "metadata": one["metadata"],
        "capabilities": capabilities,
    }


@router.get("/agents/{agent_id}/schemas")
async def get_agent_schemas(agent_id: str, services: Served) -> Response:
    """JSON Schemas of what it takes, gives and holds."""
    return await get_schemas(agent_id, services)


@router.post("/runs/search")
async def search_runs(body: RunSearch, services: Served) -> JsonResponse:
    """Runs of a thread, or of the caller's newest thousand threads; the newest first."""
    if body.thread_id is not None:
        threads = [await services.threads.get(body.thread_id)]
    else:
        threads = await _threads(services)
    wanted = None if body.agent_id is None else (await assistant(services, body.agent_id)).assistant_id
    found = [
        run_json(thread.thread_id, run)
        for thread in threads
        for run in thread.runs.values()
        if run.is_agent and not run.rolled_back
    ]
    chosen = [
        one
        for one in found
        if (body.status is None or one["status"] == body.status)
        and (wanted is None or one["assistant_id"] == wanted)
        and contains(one["metadata"], body.metadata or {})
    ]
    chosen.sort(key=lambda one: str(one["created_at"]), reverse=True)
    return JsonResponse(chosen[body.offset : body.offset + body.limit])


async def _threads(services: Services) -> list[Thread]:
    named = await services.threads.search(metadata={}, status=None, ids=None, limit=_MOST_THREADS, offset=0)
    places = asyncio.Semaphore(_AT_A_TIME)

    async def one(thread_id: ThreadId) -> Thread | None:
        async with places:
            try:
                return await services.threads.get(thread_id)
            except (NotFound, *UNREADABLE):
                return None  # deleted since it was listed, or nothing here can read its runs

    return [thread for thread in await asyncio.gather(*map(one, named)) if thread is not None]


async def _thread_of(services: Services, run_id: RunInPath) -> ThreadId:
    """Of a run that came without a thread; `NotFound`."""
    thread_id = ThreadId(run_id)
    try:
        await services.threads.get_run(thread_id, run_id)
    except NotFound:
        raise NotFound(
            f"there is no run {run_id} that came without a thread: one of a thread is at "
            f"/threads/{{thread_id}}/runs/{run_id}",
            run_id=run_id,
        ) from None
    return thread_id


@router.get("/runs/{run_id}")
async def get_run(run_id: RunInPath, services: Served) -> JsonResponse:
    """A run that came without a thread."""
    return await runs.get_run(await _thread_of(services, run_id), run_id, services)


@router.delete("/runs/{run_id}", status_code=204)
async def delete_run(run_id: RunInPath, services: Served) -> Response:
    """Delete it, with the thread that was made for it."""
    await services.threads.delete(await _thread_of(services, run_id))
    return Response(status_code=204)


@router.get("/runs/{run_id}/wait")
async def wait_for_run(run_id: RunInPath, services: Served) -> Response:
    """Wait for it, and answer with the values that it ends with."""
    return await runs.join_run(await _thread_of(services, run_id), run_id, services)


@router.get("/runs/{run_id}/stream", dependencies=[COUNTED])
async def stream_run(
    run_id: RunInPath,
    services: Served,
    *,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Its events."""
    thread_id = await _thread_of(services, run_id)
    return await runs.join_run_stream(thread_id, run_id, services, stream_mode=stream_mode, last_event_id=last_event_id)


@router.post("/runs/{run_id}/cancel")
async def cancel_run(
    run_id: RunInPath,
    services: Served,
    *,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Cancel it, durably."""
    return await runs.cancel_run(await _thread_of(services, run_id), run_id, services, wait=wait, action=action)
