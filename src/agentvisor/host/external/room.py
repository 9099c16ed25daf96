"""A bound on the bytes of large values that a host works on at a time; who finds it taken waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Room:
    """So many bytes, shared by all attempts of a host."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def taking(self, size: int) -> AsyncGenerator[None]:
        """Have room for `size` bytes while the context lasts; for more than there is, all of it."""
        size = min(size, self._size)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            self._free += size
            async with self._changed:
                self._changed.notify_all()
