"""Threads: created, shown, changed, found, deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from uuid import uuid4

from fastapi import APIRouter
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.ids import thread_id as checked
from agentvisor.host.external.storage import Patience
from agentvisor.host.http.bodies_threads import (
    THREAD_FIELDS,
    ThreadCreate,
    ThreadFilter,
    ThreadPatch,
    ThreadSearch,
    refuse,
)
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import thread_shown
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.threads_history import create_with_history
from agentvisor.host.render_typed import Json

router = APIRouter(prefix="/threads", tags=["threads"], route_class=JsonRoute)

MOST_SORTED = 1000
"""Temporal does not sort by our fields: a search that must be sorted reads this many threads at most."""
MOST_COUNTED = 100_000
_AT_A_TIME = 8
_PATIENCE = 5.0
"""Seconds that a search waits for external storage."""


@router.post("")
async def create_thread(body: ThreadCreate, services: Served) -> JsonResponse:
    """Create a thread. An existing one is 409, or comes back where `if_exists` is `do_nothing`."""
    refuse(ttl=body.ttl)
    named = checked(body.thread_id if body.thread_id is not None else str(uuid4()))
    if body.supersteps:
        await create_with_history(services, named, body)
        return JsonResponse(await thread_shown(services, named))
    await services.threads.create(named, body.metadata or {}, exist_ok=body.if_exists == "do_nothing")
    return JsonResponse(await thread_shown(services, named))


@router.post("/search")
async def search_threads(body: ThreadSearch, services: Served) -> JsonResponse:
    """Threads by metadata, status and id, newest first."""
    refuse(values=body.values, extract=body.extract)
    fields = _fields(body.select)
    found, more = await (_sorted(services, body, fields) if body.sort_by else _newest(services, body, fields))
    headers = {"X-Pagination-Total": str(body.offset + len(found) + more)}
    if more:
        headers["X-Pagination-Next"] = str(body.offset + body.limit)
    return JsonResponse([{name: one[name] for name in fields} for one in found], headers=headers)


@router.post("/count")
async def count_threads(body: ThreadFilter, services: Served) -> JsonResponse:
    """How many threads there are with this metadata and status."""
    refuse(values=body.values)
    return JsonResponse(len(await _ids(services, body, limit=MOST_COUNTED, offset=0)))


@router.get("/{thread_id}")
async def get_thread(thread_id: ThreadInPath, services: Served, include: str | None = None) -> JsonResponse:
    """A thread with its values and the questions that wait."""
    del include  # only "ttl" exists, and no thread has one
    return JsonResponse(await thread_shown(services, thread_id))


@router.patch("/{thread_id}")
async def patch_thread(thread_id: ThreadInPath, body: ThreadPatch, services: Served) -> JsonResponse:
    """Set keys of the thread's metadata; the others stay."""
    refuse(ttl=body.ttl)
    await services.threads.update_metadata(thread_id, body.metadata or {})
    return JsonResponse(await thread_shown(services, thread_id))


@router.delete("/{thread_id}", status_code=204)
async def delete_thread(thread_id: ThreadInPath, services: Served) -> Response:
    """Delete a thread with all that belongs to it; a run that is live loses its thread."""
    await services.threads.delete(thread_id)
    return Response(status_code=204)


async def _newest(services: Services, body: ThreadSearch, fields: Sequence[str]) -> tuple[list[dict[str, Json]], bool]:
    ids = await _ids(services, body, limit=body.limit + 1, offset=body.offset)
    return await _shown(services, ids[: body.limit], fields), len(ids) > body.limit


async def _sorted(services: Services, body: ThreadSearch, fields: Sequence[str]) -> tuple[list[dict[str, Json]], bool]:
    ids = await _ids(services, body, limit=MOST_SORTED + 1, offset=0)
    if len(ids) > MOST_SORTED:
        raise InvalidInput(f"sort_by: over {MOST_SORTED} threads match; narrow the search", field="sort_by")
    key = body.sort_by or "created_at"
    found = await _shown(services, ids, [*fields, key])
    found.sort(key=lambda one: str(one[key]), reverse=body.sort_order != "asc")
    return found[body.offset : body.offset + body.limit], len(found) > body.offset + body.limit


async def _ids(services: Services, body: ThreadFilter, *, limit: int, offset: int) -> list[ThreadId]:
    ids = [checked(one) for one in body.ids] if isinstance(body, ThreadSearch) and body.ids is not None else None
    metadata = _keywords(body.metadata or {})
    return await services.threads.search(metadata=metadata, status=body.status, ids=ids, limit=limit, offset=offset)


async def _shown(services: Services, ids: Sequence[ThreadId], fields: Sequence[str]) -> list[dict[str, Json]]:
    """The threads of these ids; one that was deleted meanwhile is left out.

    A store that is down must not make threads impossible to find: values that are there are marked instead.
    """
    gate, patience = asyncio.Semaphore(_AT_A_TIME), Patience(_PATIENCE)
    with_values = "values" in fields or "interrupts" in fields

    async def one(named: ThreadId) -> dict[str, Json] | None:
        async with gate:
            try:
                return await thread_shown(services, named, with_values=with_values, patience=patience)
            except NotFound:
                return None

    return [each for each in await asyncio.gather(*map(one, ids)) if each is not None]


def _fields(select: Sequence[str] | None) -> Sequence[str]:
    unknown = sorted(set(select or ()) - set(THREAD_FIELDS))
    if unknown:
        raise InvalidInput(f"select: threads have no {', '.join(unknown)}", field="select")
    return select or THREAD_FIELDS


def _keywords(metadata: Mapping[str, object]) -> dict[str, str]:
    """As metadata is indexed: text as it is, numbers and booleans as JSON has them."""
    keywords: dict[str, str] = {}
    for key, value in metadata.items():
        match value:
            case str():
                keywords[key] = value
            case bool() | int():
                keywords[key] = json.dumps(value)
            case float():
                keywords[key] = json.dumps(int(value) if value.is_integer() else value)
            case _:
                raise InvalidInput(f"metadata.{key}: text, numbers and booleans can be searched", field="metadata")
    return keywords
