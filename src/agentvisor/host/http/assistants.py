"""Assistants: every agent of the configuration is one. They are read; changing them is not offered."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from agentvisor.host.http.agents import assistant, shown
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.run_create import JsonObject
from agentvisor.host.http.services import Served

router = APIRouter(prefix="/assistants", tags=["assistants"], route_class=JsonRoute)


class AssistantSearch(BaseModel):
    """Which assistants to list."""

    model_config = ConfigDict(extra="forbid")

    metadata: JsonObject | None = None
    graph_id: str | None = None
    name: str | None = None
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


@router.post("/search")
async def search_assistants(body: AssistantSearch, services: Served) -> JsonResponse:
    """The agents of this host."""
    found = [shown(services, agent) for agent in services.config.agents]
    for field, wanted in (("graph_id", body.graph_id), ("name", body.name)):
        found = [one for one in found if wanted is None or one[field] == wanted]
    wanted_metadata = {**(body.metadata or {})}.items()
    found = [one for one in found if isinstance(one["metadata"], dict) and wanted_metadata <= one["metadata"].items()]
    if body.sort_by is not None:
        key = body.sort_by
        found.sort(key=lambda one: str(one[key]), reverse=body.sort_order != "asc")
    page = found[body.offset : body.offset + body.limit]
    headers = {"X-Pagination-Total": str(len(found))}
    if body.offset + body.limit < len(found):
        headers["X-Pagination-Next"] = str(body.offset + body.limit)
    return JsonResponse(
        [{name: value for name, value in one.items() if not body.select or name in body.select} for one in page],
        headers=headers,
    )


@router.get("/{assistant_id}")
async def get_assistant(assistant_id: str, services: Served) -> JsonResponse:
    """An agent, by its name or its assistant's id."""
    return JsonResponse(assistant(services, assistant_id))
