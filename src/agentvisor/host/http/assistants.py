"""Assistants: every agent of the configuration is one, and a caller makes more of them, in versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from fastapi import APIRouter
from starlette.responses import Response

from agentvisor.core.assistants import UNTITLED, Assistant, Patch, contains, mirrored
from agentvisor.core.errors import NotFound
from agentvisor.host.assistants import new_assistant
from agentvisor.host.http.agents import assistant, shown, shown_version
from agentvisor.host.http.bodies_assistants import (
    AssistantCreate,
    AssistantFilter,
    AssistantPatch,
    AssistantSearch,
    LatestVersion,
    VersionSearch,
    check,
)
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.services import Served, Services

router = APIRouter(prefix="/assistants", tags=["assistants"], route_class=JsonRoute)

_SORTS: Mapping[str, Callable[[Assistant], tuple[object, ...]]] = MappingProxyType(
    {
        "assistant_id": lambda one: (one.assistant_id,),
        "graph_id": lambda one: (one.graph_id, one.created_at_ms),
        "name": lambda one: (one.name.casefold(), one.created_at_ms),
        "created_at": lambda one: (one.created_at_ms,),
        "updated_at": lambda one: (one.updated_at_ms,),
    }
)
_THREADS_AT_A_TIME = 100


@router.post("")
async def create_assistant(body: AssistantCreate, services: Served) -> JsonResponse:
    """Make an assistant of an agent."""
    check(body)
    config, context = mirrored(body.config or {}, body.context or {})
    fresh = replace(
        new_assistant(body.graph_id, body.assistant_id),
        name=body.name or UNTITLED,
        description=body.description,
        config=config,
        context=context,
        metadata=body.metadata or {},
    )
    exist_ok = body.if_exists == "do_nothing"
    return JsonResponse(shown(await services.assistants.create(services.owner, fresh, exist_ok=exist_ok)))


@router.post("/search")
async def search_assistants(body: AssistantSearch, services: Served) -> JsonResponse:
    """Assistants, by default the newest first."""
    found = await _found(services, body)
    found.sort(key=_SORTS[body.sort_by or "created_at"], reverse=body.sort_order != "asc")
    page = found[body.offset : body.offset + body.limit]
    headers = {"X-Pagination-Total": str(len(found))}
    if body.offset + body.limit < len(found):
        headers["X-Pagination-Next"] = str(body.offset + body.limit)
    return JsonResponse(
        [{name: value for name, value in shown(one).items() if not body.select or name in body.select} for one in page],
        headers=headers,
    )


@router.post("/count")
async def count_assistants(body: AssistantFilter, services: Served) -> JsonResponse:
    """How many a search would find."""
    return JsonResponse(len(await _found(services, body)))


async def _found(services: Services, body: AssistantFilter) -> list[Assistant]:
    return await services.assistants.search(
        services.owner, metadata={**(body.metadata or {})}, graph_id=body.graph_id, name=body.name
    )


@router.get("/{assistant_id}")
async def get_assistant(assistant_id: str, services: Served) -> JsonResponse:
    """An assistant by its id, or the one that an agent is by its name."""
    return JsonResponse(shown(await assistant(services, assistant_id)))


@router.patch("/{assistant_id}")
async def update_assistant(assistant_id: str, body: AssistantPatch, services: Served) -> JsonResponse:
    """Make a new version of it, which is the current one then. Runs that were accepted go on as they are."""
    check(body)
    patch = Patch(body.graph_id, body.config, body.context, body.metadata, body.name, body.description)
    named = (await assistant(services, assistant_id)).assistant_id
    return JsonResponse(shown(await services.assistants.update(services.owner, named, patch)))


@router.delete("/{assistant_id}", status_code=204)
async def delete_assistant(
    assistant_id: str,
    services: Served,
    delete_threads: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> Response:
    """Delete it with its versions; with `delete_threads` also the threads that it has run on last.

    An agent of the configuration becomes again what that says; 409 where it is that already.
    """
    named = (await assistant(services, assistant_id)).assistant_id
    if delete_threads:
        await _delete_threads(services, named)
    await services.assistants.delete(services.owner, named)
    return Response(status_code=204)


async def _delete_threads(services: Services, assistant_id: str) -> None:
    gone: set[str] = set()
    while True:
        found = await services.threads.search(
            metadata={"assistant_id": assistant_id},
            status=None,
            ids=None,
            limit=len(gone) + _THREADS_AT_A_TIME,
            offset=0,
        )
        # Temporal's list shows what was deleted for a while.
        waiting = [one for one in found if one not in gone]
        if not waiting:
            return
        for thread_id in waiting:
            gone.add(thread_id)
            try:
                await services.threads.delete(thread_id)
            except NotFound:
                continue


@router.post("/{assistant_id}/versions")
async def list_versions(assistant_id: str, body: VersionSearch, services: Served) -> JsonResponse:
    """Its versions, the newest first."""
    named = (await assistant(services, assistant_id)).assistant_id
    found = [
        one
        for one in await services.assistants.versions(services.owner, named)
        if contains(dict(one.metadata), body.metadata or {})
    ]
    return JsonResponse([shown_version(one) for one in found[body.offset : body.offset + body.limit]])


@router.post("/{assistant_id}/latest")
async def set_latest_version(assistant_id: str, body: LatestVersion, services: Served) -> JsonResponse:
    """Make a version the current one."""
    named = (await assistant(services, assistant_id)).assistant_id
    return JsonResponse(shown(await services.assistants.set_latest(services.owner, named, body.version)))
