"""Threads into files and back: one host's thread is another's, or this one's again after a bad day."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from agentvisor.core.ids import thread_id as checked
from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.reading import thread_shown
from agentvisor.host.http.services import Served
from agentvisor.host.threads_export import export
from agentvisor.host.threads_import import import_thread
from agentvisor.protocol.exports import MEDIA_TYPE, SUFFIX

router = APIRouter(prefix="/threads", tags=["threads"], route_class=JsonRoute)

_FILE: dict[str, Any] = {
    "requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/{thread_id}/export")
async def export_thread(thread_id: ThreadInPath, services: Served) -> Response:
    """All of the thread as a file: checkpoints, values, pending writes, runs, thread state, effects, metadata.

    `X-Export-Size` is about its size. A file without its last record is worth nothing: the host could not go on.
    """
    found = await export(services.threads, thread_id)
    headers = {
        "content-disposition": f'attachment; filename="{thread_id}{SUFFIX}"',
        "x-export-size": str(found.size),
        "cache-control": "no-store",
    }
    return StreamingResponse(found.pieces(), media_type=MEDIA_TYPE, headers=headers)


@router.post("/import", openapi_extra=_FILE)
async def import_thread_file(
    request: Request,
    services: Served,
    thread_id: Annotated[str | None, Query(description="Another id than the one that the file has.")] = None,
) -> Response:
    """Create the thread that a file holds, all at once or not at all; it is the caller's.

    409 where there is a thread of that id; 422 says what is wrong with the file, and where; 413: it does not fit here.
    """
    named = checked(thread_id) if thread_id is not None else None
    try:
        made = await import_thread(services.threads, request.stream(), services.config.storage, named)
    except ClientDisconnect:
        return Response(status_code=400)  # nobody reads it
    return JsonResponse(await thread_shown(services, made))
