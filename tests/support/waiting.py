"""Waiting for a condition with a deadline, instead of sleeping."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

PAUSE = 0.01


async def until(condition: Callable[[], object | Awaitable[object]], *, seconds: float = 15.0) -> None:
    """Return once the condition holds; it may be a coroutine function. `TimeoutError` after the deadline."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if inspect.isawaitable(holds):
                holds = await holds
            if holds:
                return
            await asyncio.sleep(PAUSE)
