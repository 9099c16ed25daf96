"""Routes that answer with a stream are counted, and refused past the limit of their key, before they begin anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from fastapi import Depends

from agentvisor.host.http.services import Served
from agentvisor.host.metrics import STREAMS


async def _counted(services: Served) -> AsyncGenerator[None]:
    """From before the run is started until the last byte of its stream was sent, or nobody reads it any more."""
    services.stream_counts.enter(services.owner, services.config.http.max_streams)
    STREAMS.inc()
    try:
        yield
    finally:
        STREAMS.dec()
        services.stream_counts.leave(services.owner)


COUNTED = Depends(_counted)
"""A dependency of every route that answers with a stream."""
