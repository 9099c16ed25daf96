"""How much a thread holds, of what, and how near it is to what it may hold."""

from __future__ import annotations

from fastapi import APIRouter

from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.services import Served
from agentvisor.host.render_typed import Json

router = APIRouter(prefix="/threads/{thread_id}", tags=["threads"], route_class=JsonRoute)


@router.get("/storage")
async def get_storage(thread_id: ThreadInPath, services: Served) -> JsonResponse:
    """Sizes in bytes. `used` is the share of the limit that no compaction can free: at 1, writes are refused.

    `saves` are those of the checkpoints that `agentvisor.checkpoint` has made.

    `effects` are those of `agentvisor.once`; intended are those that are happening or of unknown outcome.

    `external` counts those of the blobs whose bytes are in external storage.

    `history` is that of the workflow's current execution; `left_out` counts, by step, what compactions have left out.
    """
    found = await services.threads.storage(thread_id)
    left_out: dict[str, Json] = dict(sorted(found.left_out.items()))
    return JsonResponse(
        {
            "thread_id": thread_id,
            "state_bytes": found.state_bytes,
            "unsheddable_bytes": found.unsheddable_bytes,
            "limit_bytes": found.limit_bytes,
            "used": round(found.unsheddable_bytes / found.limit_bytes, 4) if found.limit_bytes else None,
            "checkpoints": found.checkpoints,
            "saves": found.saves,
            "namespaces": found.namespaces,
            "blobs": {"count": found.blobs, "bytes": found.blob_bytes},
            "external": {"count": found.external_blobs, "bytes": found.external_bytes},
            "pending_writes": {"count": found.pending_writes, "bytes": found.pending_write_bytes},
            "effects": {
                "count": found.effects,
                "bytes": found.effect_bytes,
                "intended": found.intended_effects,
            },
            "thread_state": {
                "entries": found.thread_state_entries,
                "items": found.thread_state_items,
                "bytes": found.thread_state_bytes,
            },
            "runs": found.runs,
            "history": {"events": found.history_events, "bytes": found.history_bytes},
            "compactions": found.compactions,
            "left_out": left_out,
        }
    )
