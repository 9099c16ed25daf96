"""Whether this host answers, and what it is."""

from __future__ import annotations

from fastapi import APIRouter

from agentvisor.host.http.json import JsonResponse, JsonRoute
from agentvisor.host.http.services import Served

router = APIRouter(tags=["host"], route_class=JsonRoute)


@router.get("/ok")
async def ok(services: Served) -> JsonResponse:
    """The host answers and takes work; 503 once it was told to stop: send requests to another one."""
    if services.stopping():
        return JsonResponse({"ok": False, "stopping": True}, status_code=503)
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
            "flags": {"assistants": True, "crons": False, "langsmith": False, "strict_resume": True},
        }
    )
