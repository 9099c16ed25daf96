"""The host's metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from time import monotonic

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.http.services import Operated
from agentvisor.host.metrics import THREADS
from agentvisor.host.threads import Threads
from agentvisor.host.worker_metrics import take_temporals

router = APIRouter(tags=["host"])

_COUNT_EVERY = 5.0
_COUNT_SECONDS = 2.0
"""A scrape has its time, too: what Temporal does not count meanwhile is left out."""


@router.get("/metrics")
async def metrics(services: Operated) -> Response:
    """Every metric of this host, in Prometheus' text format. The operator's, where keys are needed."""
    take_temporals()
    await _threads.refresh(services.threads)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


class _ThreadCounts:
    """Asked for at most so often, however many scrape."""

    def __init__(self) -> None:
        self._asked_at = float("-inf")

    async def refresh(self, threads: Threads) -> None:
        if monotonic() - self._asked_at < _COUNT_EVERY:
            return
        self._asked_at = monotonic()
        try:
            async with asyncio.timeout(_COUNT_SECONDS):
                counts = await asyncio.gather(*(threads.count(one) for one in ThreadStatus))
        except Exception:  # noqa: BLE001 - whatever keeps Temporal from counting, the host tells what it knows itself
            THREADS.clear()
            return
        for status, number in zip(ThreadStatus, counts, strict=True):
            THREADS.labels(status.value).set(number)


_threads = _ThreadCounts()
