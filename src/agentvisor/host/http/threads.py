"""Threads: created, shown, changed, found, deleted."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import thread_id as checked
from agentvisor.host.http.bodies_threads import (
    THREAD_FIELDS,
    ThreadCreate,
    ThreadFilter,
    ThreadPatch,
    ThreadSearch,
    lifetime,
)
from agentvisor.host.http.extracting import extracted, paths_of
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import created_shown, thread_shown
from agentvisor.host.http.selecting import selected
from agentvisor.host.http.services import Served
from agentvisor.host.http.thread_search import count, page
from agentvisor.host.http.threads_history import create_with_history

router = APIRouter(prefix="/threads", tags=["threads"], route_class=JsonRoute)


@router.post("")
async def create_thread(body: ThreadCreate, services: Served) -> JsonResponse:
    """Create a thread. An existing one is 409, or comes back where `if_exists` is `do_nothing`."""
    named = checked(body.thread_id if body.thread_id is not None else str(uuid4()))
    if body.supersteps:
        await create_with_history(services, named, body)
        return JsonResponse(await thread_shown(services, named))
    thread = await services.threads.create(
        named, body.metadata or {}, exist_ok=body.if_exists == "do_nothing", lifetime=lifetime(body.ttl)
    )
    return JsonResponse(await created_shown(services, thread))


@router.post("/search")
async def search_threads(body: ThreadSearch, services: Served) -> JsonResponse:
    """Threads by metadata, values, status and id, newest first; `extract` shows parts of them, by path."""
    fields, paths = selected(body.select, THREAD_FIELDS, "threads"), paths_of(body.extract or {}, THREAD_FIELDS)
    found = await page(services, body, {*fields, *(str(path[0]) for path in paths.values())})
    headers = {"X-Pagination-Total": str(body.offset + len(found.threads) + found.more)}
    if found.more:
        headers["X-Pagination-Next"] = str(body.offset + body.limit)
    parts = [{"extracted": extracted(one, paths)} if paths else {} for one in found.threads]
    shown = [{name: one[name] for name in fields} | part for one, part in zip(found.threads, parts, strict=True)]
    return JsonResponse(shown, headers=headers)


@router.post("/count")
async def count_threads(body: ThreadFilter, services: Served) -> JsonResponse:
    """How many threads there are with this metadata, these values and this status."""
    return JsonResponse(await count(services, body))


@router.get("/{thread_id}")
async def get_thread(
    thread_id: ThreadInPath, services: Served, include: Annotated[list[str] | None, Query()] = None
) -> JsonResponse:
    """A thread with its values and the questions that wait; with `include=ttl` also when its time is over."""
    wanted = {name for one in include or () for name in one.split(",") if name}
    if unknown := sorted(wanted - {"ttl"}):
        raise InvalidInput(f"include: there is ttl, and no {', '.join(unknown)[:200]}", field="include")
    return JsonResponse(await thread_shown(services, thread_id, with_ttl="ttl" in wanted))


@router.patch("/{thread_id}")
async def patch_thread(thread_id: ThreadInPath, body: ThreadPatch, services: Served) -> JsonResponse:
    """Set keys of the thread's metadata, the others stay; and its time to live."""
    if "ttl" in body.model_fields_set:
        await services.threads.set_lifetime(thread_id, lifetime(body.ttl), body.metadata or {})
    else:
        await services.threads.update_metadata(thread_id, body.metadata or {})
    return JsonResponse(await thread_shown(services, thread_id))


@router.delete("/{thread_id}", status_code=204)
async def delete_thread(thread_id: ThreadInPath, services: Served) -> Response:
    """Delete a thread with all that belongs to it; a run that is live loses its thread."""
    await services.threads.delete(thread_id)
    return Response(status_code=204)
