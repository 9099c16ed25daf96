"""Threads copied and pruned."""

from __future__ import annotations

from contextlib import suppress

from fastapi import APIRouter

from agentvisor.core.errors import Conflict, NotFound
from agentvisor.core.ids import thread_id as checked
from agentvisor.host.http.bodies_threads import ThreadCopy, ThreadPrune
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import thread_shown
from agentvisor.host.http.services import Served
from agentvisor.host.threads_copy import copy_head

router = APIRouter(prefix="/threads", tags=["threads"], route_class=JsonRoute)


@router.post("/{thread_id}/copy")
async def copy_thread(thread_id: ThreadInPath, services: Served, body: ThreadCopy | None = None) -> JsonResponse:
    """A new thread that begins where this one stands: its current checkpoint and pending writes, and its metadata.

    `warnings` says what has stayed behind: the state of subgraphs.
    """
    del body  # there is nothing to say; whoever says something learns that it is not heard
    copy = await copy_head(services.threads, thread_id)
    return JsonResponse({**await thread_shown(services, copy.thread_id), "warnings": [*copy.warnings]})


@router.post("/prune")
async def prune_threads(body: ThreadPrune, services: Served) -> JsonResponse:
    """Leave of each thread its newest checkpoints, or nothing. Threads that do not exist are not counted."""
    ids = [checked(one) for one in dict.fromkeys(body.thread_ids)]
    prune = services.threads.delete if body.strategy == "delete" else services.prune
    pruned, busy = 0, None
    for one in ids:
        with suppress(NotFound):
            try:
                await prune(one)
                pruned += 1
            except Conflict as error:
                busy = error
    if busy is not None:
        raise Conflict(f"{busy.message} ({pruned} of {len(ids)} threads were pruned)", **busy.details)
    return JsonResponse({"pruned_count": pruned})
