"""The host's metrics, as Prometheus reads them."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

router = APIRouter(tags=["host"])


@router.get("/metrics")
async def metrics() -> Response:
    """Every metric of this host, in Prometheus' text format."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
