"""The first step of shedding: values that a compaction would leave out go to external storage instead.

The workflow cannot write there, so the host that holds the attempt does it before the thread continues as new: when it
hands the attempt over, and when the attempt ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from agentvisor.core.errors import AgentVisorError
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob
from agentvisor.host.external.attempt_objects import Outlines

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")

COMFORTABLE = 0.7
"""Of what a compaction may carry: above it, values are moved."""
_MOVED_FROM = 16 * 1024
_SECONDS = 10.0
"""For all of it: a store that is down must not hold a compaction up, which then leaves out what it must."""

MoveOut = Callable[[list[BlobKey], int], Awaitable[None]]
"""Moves values in this order until so many bytes of the state are saved."""


async def move_before_compaction(outlines: Awaitable[Outlines], move_out: MoveOut, limit: int) -> None:
    """Move the largest values, as many as it takes. Raises nothing: without it, more is left out."""
    try:
        async with asyncio.timeout(_SECONDS):
            state = await outlines
            short = state.stored_bytes - int(limit * COMFORTABLE)
            if short > 0:
                await move_out([blob.key for blob in _largest_first(state.blobs)], short)
    except (TimeoutError, AgentVisorError) as error:
        log.warning("values_not_moved", error=str(error) or "it took too long")


def _largest_first(blobs: list[Blob]) -> list[Blob]:
    inline = [blob for blob in blobs if not blob.is_external and blob.stored_size >= _MOVED_FROM]
    return sorted(inline, key=lambda blob: blob.stored_size, reverse=True)
