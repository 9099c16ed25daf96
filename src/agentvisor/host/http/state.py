"""States of threads: the latest, one of the past, and their history."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import ROOT, CheckpointId, ThreadId
from agentvisor.host.http.bodies_threads import HistorySearch, StateAt
from agentvisor.host.http.json import JsonResponse, JsonRoute, encode
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import history, latest_state, state_at
from agentvisor.host.http.services import Served, Services
from agentvisor.host.render_typed import Json

router = APIRouter(prefix="/threads/{thread_id}", tags=["state"], route_class=JsonRoute)

Select = Annotated[list[str] | None, Query()]


@router.get("/state")
async def get_state(
    thread_id: ThreadInPath, services: Served, *, subgraphs: bool = False, select: Select = None
) -> JsonResponse:
    """The thread as it stands now."""
    state = await latest_state(services, thread_id, subgraphs=subgraphs)
    return JsonResponse(_selected(state, select))


@router.get("/state/{checkpoint_id}")
async def get_state_at(
    thread_id: ThreadInPath, checkpoint_id: str, services: Served, *, subgraphs: bool = False, select: Select = None
) -> JsonResponse:
    """The thread at a checkpoint of its root; an unknown one has an empty state."""
    where = CheckpointId(checkpoint_id)
    state = await state_at(services, thread_id, ROOT, where, subgraphs=subgraphs)
    return JsonResponse(_selected(state, select))


@router.post("/state/checkpoint")
async def post_state_checkpoint(thread_id: ThreadInPath, body: StateAt, services: Served) -> JsonResponse:
    """The thread at a checkpoint of any namespace, or at that namespace's latest."""
    address = body.checkpoint
    if address.thread_id not in (None, thread_id):
        raise InvalidInput("checkpoint.thread_id is another thread", field="checkpoint.thread_id")
    state = await state_at(
        services,
        thread_id,
        address.namespace,
        CheckpointId(address.checkpoint_id) if address.checkpoint_id else None,
        subgraphs=body.subgraphs,
    )
    return JsonResponse(_selected(state, body.select))


@router.get("/history")
async def get_history(
    thread_id: ThreadInPath,
    services: Served,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    before: str | None = None,
    checkpoint_ns: str = "",
) -> Response:
    """The latest states of the thread, newest first."""
    search = HistorySearch.model_validate(
        {"limit": limit, "before": before, "checkpoint": {"checkpoint_ns": checkpoint_ns}}
    )
    return await _listed(await _history(services, thread_id, search))


@router.post("/history")
async def post_history(thread_id: ThreadInPath, body: HistorySearch, services: Served) -> Response:
    """States of the thread by namespace, age and metadata, newest first."""
    states = await _history(services, thread_id, body)
    return await _listed([_selected(one, body.select) for one in states])


async def _history(services: Services, thread_id: ThreadId, search: HistorySearch) -> list[dict[str, Json]]:
    return await history(
        services,
        thread_id,
        namespace=search.namespace,
        checkpoint_id=search.checkpoint_id,
        before=search.before_id,
        metadata=dict(search.metadata or {}),
        limit=search.limit,
    )


async def _listed(states: Sequence[Mapping[str, Json]]) -> Response:
    """The list, encoded one by one: others have their turn in between."""
    encoded: list[bytes] = []
    for state in states:
        encoded.append(encode(state))
        await asyncio.sleep(0)
    return Response(b"[" + b",".join(encoded) + b"]", media_type="application/json")


def _selected(state: Mapping[str, Json], select: Sequence[str] | None) -> Mapping[str, Json]:
    if not select:
        return state
    unknown = sorted(set(select) - state.keys())
    if unknown:
        raise InvalidInput(f"select: states have no {', '.join(unknown)}", field="select")
    return {name: state[name] for name in select}
