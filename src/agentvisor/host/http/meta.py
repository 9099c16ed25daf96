"""Whether this host answers, whether it should be asked, and what it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.services import Served

router = APIRouter(tags=["host"], route_class=JsonRoute)


@router.get("/ok")
async def ok(
    services: Served,
    check_db: Annotated[bool, Query(description="Ask as /readyz does: 503 as well where Temporal is silent.")] = False,  # noqa: FBT002 - the parameter of LangGraph's server
) -> JsonResponse:
    """The host answers and takes work; 503 once it was told to stop: send requests to another one."""
    if services.stopping():
        return JsonResponse({"ok": False, "stopping": True}, status_code=503)
    return await readyz(services) if check_db else JsonResponse({"ok": True})


@router.get("/livez")
async def livez(services: Served) -> JsonResponse:
    """The process answers, whatever it is waiting for: where this fails, only a restart helps."""
    del services  # whoever it is for
    return JsonResponse({"ok": True})


@router.get("/readyz")
async def readyz(services: Served) -> JsonResponse:
    """Send requests here; 503 with the reason where another host had better have them.

    `stopping`: it was told to stop. `temporal_unreachable`: Temporal has not answered for `temporal.heartbeat_timeout`.
    `version_not_current`: with worker versioning, its version, or having none, was not yet made current.
    """
    reason = services.not_ready()
    if reason is not None:
        return JsonResponse({"ok": False, "reason": reason.value}, status_code=503)
    return JsonResponse({"ok": True})


@router.get("/info")
async def info(services: Served) -> JsonResponse:
    """Version, address of the gRPC end, agents, and what this host can do."""
    storage = services.config.storage
    return JsonResponse(
        {
            "version": services.version,
            "agentvisor": services.version,
            "grpc": services.grpc,
            "limits": {"max_value": storage.max_value, "max_stored_value": storage.max_stored_value},
            "agents": sorted(services.config.agents),
            "flags": {"assistants": True, "crons": True, "langsmith": False, "strict_resume": True},
        }
    )
