"""Server-sent events: how they are written, and the signs of life between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeVar

HEARTBEAT = b": heartbeat\r\n\r\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; `data` is JSON."""

    event: str
    data: bytes
    id: int | None = None

    def encode(self) -> bytes:
        """As it goes over the wire. What an agent sent cannot break out of its line."""
        name = self.event.encode("utf-8", "backslashreplace").translate(_NO_BREAKS)
        number = b"" if self.id is None else b"\r\nid: %d" % self.id
        # In JSON, a raw line break is only ever space between values.
        return b"event: %b\r\ndata: %b%b\r\n\r\n" % (name, self.data.translate(_NO_BREAKS), number)


async def wire(events: AsyncGenerator[ServerEvent], heartbeat: float) -> AsyncGenerator[bytes]:
    """The events as bytes, with a heartbeat wherever nothing came for so many seconds."""
    async for event in with_heartbeats(events, heartbeat):
        yield HEARTBEAT if event is None else event.encode()


async def with_heartbeats(items: AsyncGenerator[_Item], every: float) -> AsyncGenerator[_Item | None]:
    """The items, and None wherever nothing came for so long. Closed early, it closes the items' source, too."""
    following = asyncio.ensure_future(anext(items))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=every)
            if not done:
                yield None
                continue
            try:
                item = following.result()
            except StopAsyncIteration:
                return
            yield item
            following = asyncio.ensure_future(anext(items))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await items.aclose()
