"""How many runs may live on this host: an attempt keeps its place long after its activity's slot is free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)


class RunCapacity(CustomSlotSupplier):
    """Lets the worker poll for another run only while fewer than `most` live here or are on their way."""

    def __init__(self, most: int, live: Callable[[], int]) -> None:
        self._most = most
        self._live = live
        self._reserved = 0
        self._freed = asyncio.Event()

    def changed(self) -> None:
        """A run has ended, or a slot was given back."""
        self._freed.set()

    def _free(self) -> bool:
        return self._reserved + self._live() < self._most

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002 - Temporal's signature
        while not self._free():
            self._freed.clear()
            await self._freed.wait()
        self._reserved += 1
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002 - Temporal's signature
        if not self._free():
            return None
        self._reserved += 1
        return SlotPermit()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Nothing: whether it is used is told by the attempt that lives."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002 - Temporal's signature
        self._reserved -= 1
        self._freed.set()
