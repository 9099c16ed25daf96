"""The host's metrics, as Prometheus reads them."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from agentvisor.host.http.services import Operated

router = APIRouter(tags=["host"])


@router.get("/metrics")
async def metrics(services: Operated) -> Response:
    """Every metric of this host, in Prometheus' text format. The operator's, where keys are needed."""
    del services  # that it was given is the permission
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
