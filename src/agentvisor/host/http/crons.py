"""Crons: runs by the clock, on a thread or each on one of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from uuid import uuid4

from fastapi import APIRouter
from starlette.responses import Response

from agentvisor.core.cron_schedule import CronSchedule
from agentvisor.core.crons import Cron, zone
from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.core.ids import ThreadId
from agentvisor.host.crons import now_ms
from agentvisor.host.http.agents import assistant
from agentvisor.host.http.bodies_crons import (
    CRON_FIELDS,
    CronCreate,
    CronFilter,
    CronPatch,
    CronSearch,
    at_ms,
    check,
    payload,
    run_of,
)
from agentvisor.host.http.containing import contains
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.run_create import JsonObject
from agentvisor.host.http.run_start import prepared
from agentvisor.host.http.selecting import selected
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.times import iso
from agentvisor.host.render_typed import Json

router = APIRouter(tags=["crons"], route_class=JsonRoute)

_SORTS: Mapping[str, Callable[[Cron], tuple[object, ...]]] = MappingProxyType(
    {
        "cron_id": lambda one: (one.cron_id,),
        "assistant_id": lambda one: (one.assistant_id,),
        "thread_id": lambda one: (one.thread_id or "",),
        "schedule": lambda one: (one.schedule,),
        "created_at": lambda one: (one.created_at_ms,),
        "updated_at": lambda one: (one.updated_at_ms,),
        "end_time": lambda one: (one.end_time_ms is None, one.end_time_ms or 0),
        "next_run_date": lambda one: _later_never(one.next_run_ms(now_ms())),
    }
)


def _later_never(at: int | None) -> tuple[object, ...]:
    return (at is None, at or 0)


@router.post("/threads/{thread_id}/runs/crons")
async def create_cron_of_thread(thread_id: ThreadInPath, body: CronCreate, services: Served) -> JsonResponse:
    """Have a run started on the thread whenever the schedule says; the cron goes with the thread."""
    if body.on_run_completed is not None:
        raise InvalidInput(
            "on_run_completed is for crons without a thread: this one's thread stays", field="on_run_completed"
        )
    await services.threads.get(thread_id)
    return JsonResponse(_shown(await services.crons.create(await _new(services, body, thread_id))))


@router.post("/runs/crons")
async def create_cron(body: CronCreate, services: Served) -> JsonResponse:
    """Have a run started on a thread of its own whenever the schedule says."""
    return JsonResponse(_shown(await services.crons.create(await _new(services, body, None))))


async def _new(services: Services, body: CronCreate, thread_id: ThreadId | None) -> Cron:
    check(body)
    now = now_ms()
    cron = Cron(
        cron_id=str(uuid4()),
        owner=services.owner,
        assistant_id="",
        thread_id=thread_id,
        schedule=body.schedule,
        timezone=body.timezone,
        end_time_ms=at_ms(body.end_time),
        enabled=body.enabled,
        on_run_completed=body.on_run_completed or (None if thread_id is not None else "delete"),
        payload=payload(body),
        metadata=body.metadata or {},
        created_at_ms=now,
        updated_at_ms=now,
    )
    return await _checked(services, cron)


async def _checked(services: Services, cron: Cron) -> Cron:
    """With its assistant; refused is what its runs would be refused for, and what is never due."""
    CronSchedule.parse(cron.schedule)
    zone(cron.timezone)
    run, thread_id = run_of({**cron.payload}), ThreadId(cron.thread_id or "")
    ready = await prepared(services, run, thread_id, stateless=cron.thread_id is None)
    size, limit = len(cron.encoded()), services.config.storage.max_record
    if size > limit:
        raise ValueTooLarge(
            f"the cron has {size} bytes with its input, the limit is {limit} (storage.max_record): give it a reference "
            "to large data",
            size=str(size),
            limit=str(limit),
        )
    return replace(cron, assistant_id=ready.spec.assistant_id)


@router.post("/runs/crons/search")
async def search_crons(body: CronSearch, services: Served) -> JsonResponse:
    """Crons, by default the newest first."""
    fields = selected(body.select, (*CRON_FIELDS, "now"), "crons")
    found = await _found(services, body)
    found.sort(key=_SORTS[body.sort_by or "created_at"], reverse=body.sort_order != "asc")
    page = found[body.offset : body.offset + body.limit]
    headers = {"X-Pagination-Total": str(len(found))}
    if body.offset + body.limit < len(found):
        headers["X-Pagination-Next"] = str(body.offset + body.limit)
    shown = [{**_shown(one), "now": iso(now_ms())} for one in page]
    wanted = fields if body.select else CRON_FIELDS
    return JsonResponse([{name: one[name] for name in wanted} for one in shown], headers=headers)


@router.post("/runs/crons/count")
async def count_crons(body: CronFilter, services: Served) -> JsonResponse:
    """How many a search would find."""
    return JsonResponse(len(await _found(services, body)))


async def _found(services: Services, body: CronFilter) -> list[Cron]:
    wanted = None if body.assistant_id is None else (await assistant(services, body.assistant_id)).assistant_id
    return [
        one
        for one in await services.crons.all(services.owner)
        if (wanted is None or one.assistant_id == wanted)
        and (body.thread_id is None or one.thread_id == body.thread_id)
        and (body.enabled is None or one.enabled == body.enabled)
        and contains(dict(one.metadata), body.metadata or {})
    ]


@router.get("/runs/crons/{cron_id}")
async def get_cron(cron_id: str, services: Served) -> JsonResponse:
    """A cron."""
    return JsonResponse(_shown(await services.crons.find(services.owner, cron_id)))


@router.patch("/runs/crons/{cron_id}")
async def update_cron(cron_id: str, body: CronPatch, services: Served) -> JsonResponse:
    """Change what is named; runs that it has started go on as they are."""
    check(body)
    before = await services.crons.find(services.owner, cron_id)
    if body.on_run_completed is not None and before.thread_id is not None:
        raise InvalidInput("on_run_completed is for crons without a thread", field="on_run_completed")
    # One is switched off whatever has become of its agent.
    only_stops = body.model_fields_set == {"enabled"} and not body.enabled
    checked = before if only_stops else await _checked(services, _changed(before, body))

    def follows(one: Cron) -> Cron:
        return replace(_changed(one, body), assistant_id=checked.assistant_id)

    return JsonResponse(_shown(await services.crons.update(services.owner, cron_id, follows)))


def _changed(one: Cron, body: CronPatch) -> Cron:
    named = body.model_fields_set
    given: JsonObject = payload(body)
    return replace(
        one,
        schedule=body.schedule or one.schedule,
        timezone=body.timezone if "timezone" in named else one.timezone,
        end_time_ms=at_ms(body.end_time) if "end_time" in named else one.end_time_ms,
        enabled=one.enabled if body.enabled is None else body.enabled,
        on_run_completed=body.on_run_completed or one.on_run_completed,
        payload={**one.payload, **given},
        metadata=one.metadata if body.metadata is None else body.metadata,
        updated_at_ms=now_ms(),
    )


@router.delete("/runs/crons/{cron_id}", status_code=204)
async def delete_cron(cron_id: str, services: Served) -> Response:
    """Delete it: it starts nothing any more."""
    await services.crons.delete(services.owner, cron_id)
    return Response(status_code=204)


def _shown(one: Cron) -> dict[str, Json]:
    due = one.next_run_ms(now_ms())
    return {
        "cron_id": one.cron_id,
        "assistant_id": one.assistant_id,
        "thread_id": one.thread_id,
        "on_run_completed": one.on_run_completed,
        "end_time": None if one.end_time_ms is None else iso(one.end_time_ms),
        "schedule": one.schedule,
        "timezone": one.timezone,
        "created_at": iso(one.created_at_ms),
        "updated_at": iso(one.updated_at_ms),
        "user_id": one.owner or None,
        "payload": {**one.payload},
        "next_run_date": None if due is None else iso(due),
        "metadata": {**one.metadata},
        "enabled": one.enabled,
    }
