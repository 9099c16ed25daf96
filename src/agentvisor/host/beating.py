"""An activity's signs of life: a host that is killed in the middle of one is noticed by its silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

_BEAT = 2.0
"""Seconds."""


@asynccontextmanager
async def beating() -> AsyncGenerator[None]:
    """Heartbeats while the context lasts."""
    alive = asyncio.create_task(_beat())
    try:
        yield
    finally:
        alive.cancel()
        with suppress(asyncio.CancelledError):
            await alive


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(_BEAT)
