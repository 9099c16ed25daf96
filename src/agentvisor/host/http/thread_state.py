"""Thread state over HTTP: entries by scope and key, read at any time, changed while no run is active."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator
from starlette.responses import Response

from agentvisor.core.errors import Conflict, InvalidInput, NotFound
from agentvisor.core.keys import checked_key, checked_scope
from agentvisor.core.thread_state import StateEntry
from agentvisor.host.http.bodies_state import StateAppend, StatePatch, StateSet
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.services import Served
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json
from agentvisor.host.state_changes import EntryName, append_item, delete_entry, missing, read_entry, set_value

router = APIRouter(prefix="/threads/{thread_id}/thread-state", tags=["thread state"], route_class=JsonRoute)

Key = Annotated[str, AfterValidator(lambda key: checked_key(key, "the key of thread state"))]
Scope = Annotated[str, AfterValidator(checked_scope), Query(description="A name space of keys.")]


def _named(thread_id: ThreadInPath, key: Key, scope: Scope = "") -> EntryName:
    return EntryName(thread_id, scope, key)


Name = Annotated[EntryName, Depends(_named)]

_ENTRY = "/{key:path}"
"""Of a path: a key may hold slashes."""

_TRIES = 10


@router.get("")
async def list_thread_state(
    thread_id: ThreadInPath,
    services: Served,
    *,
    scope: Scope = "",
    prefix: str = "",
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonResponse:
    """The entries of a scope by their keys, without values. `next` is the `after` of the next page, or null."""
    thread = await services.threads.state(thread_id)
    found = thread.store.state.listed(scope, prefix, after)
    page = found[:limit]
    more = len(found) > len(page)
    return JsonResponse({"entries": [_outline(one) for one in page], "next": page[-1].key if more else None})


@router.get(_ENTRY)
async def get_thread_state(
    name: Name,
    services: Served,
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JsonResponse:
    """An entry with its value. Of a list, `limit` items from `start` on; `next` is the next page's `start`, or null."""
    entry, value = await read_entry(services.threads, name, start=start, limit=limit)
    ends = start + limit
    more = entry.is_list and entry.value_items + len(entry.items) > ends
    return JsonResponse({**_outline(entry), "value": value, "next": ends if more else None})


@router.put(_ENTRY)
async def put_thread_state(name: Name, body: StateSet, services: Served) -> JsonResponse:
    """Set a value. The thread must exist; while a run is active on it this is 409."""
    await services.threads.get(name.thread_id)
    revision = await set_value(services.call, name, body.value, body.expected_revision)
    return _changed(name, revision)


@router.patch(_ENTRY)
async def patch_thread_state(name: Name, body: StatePatch, services: Served) -> JsonResponse:
    """Set members of the object that is the value, from an empty one on where there is none."""
    for last in (*[False] * (_TRIES - 1), True):
        try:
            revision, before = await _object(services, name)
            expected = revision if body.expected_revision is None else body.expected_revision
            merged = cast("Json", {**before, **body.changes})
            return _changed(name, await set_value(services.call, name, merged, expected))
        except Conflict as error:
            # Only where somebody else was faster is there anything to try again.
            if last or body.expected_revision is not None or "revision" not in error.details:
                raise
    raise AssertionError


@router.delete(_ENTRY, status_code=204)
async def delete_thread_state(
    name: Name,
    services: Served,
    expected_revision: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """Delete an entry; 404 where there is none."""
    await services.threads.get(name.thread_id)
    if not await delete_entry(services.call, name, expected_revision):
        raise missing(name)
    return Response(status_code=204)


@router.post(f"{_ENTRY}/append")
async def append_thread_state(name: Name, body: StateAppend, services: Served) -> JsonResponse:
    """Append an item to the list that is the value, from an empty one on where there is none."""
    await services.threads.get(name.thread_id)
    revision = await append_item(services.call, name, body.item, body.expected_revision)
    return _changed(name, revision)


async def _object(services: Served, name: EntryName) -> tuple[int, dict[str, Json]]:
    try:
        entry, value = await read_entry(services.threads, name)
    except NotFound:
        await services.threads.get(name.thread_id)
        return 0, {}
    if not isinstance(value, dict):
        raise InvalidInput(
            f"thread state {name.key!r} holds no object, whose members could be changed", field="changes"
        )
    return entry.revision, value


def _outline(entry: StateEntry) -> dict[str, Json]:
    return {
        "scope": entry.scope,
        "key": entry.key,
        "revision": entry.revision,
        "updated_at": iso(entry.updated_at_ms),
        "items": entry.value_items + len(entry.items) if entry.is_list else None,
    }


def _changed(name: EntryName, revision: int) -> JsonResponse:
    return JsonResponse({"scope": name.scope, "key": name.key, "revision": revision})
