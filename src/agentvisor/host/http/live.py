"""A response that is still being made while it is sent, and that notices when nobody reads it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override


class LiveResponse(Response):
    """Sends pieces as they come.

    When the client closes the connection, the making of the body ends and `on_disconnect` is called; it is not when the
    host itself ends the response, so that a host that stops cancels nobody's run.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes],
        media_type: str,
        headers: Mapping[str, str],
        on_disconnect: Callable[[], object] | None = None,
    ) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.body = b""
        self.init_headers(headers)
        self.raw_headers = [one for one in self.raw_headers if one[0] != b"content-length"]
        self._pieces = pieces
        self._on_disconnect = on_disconnect

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        watching = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait([sending, watching], return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() or isinstance(sending.exception(), OSError):
                if self._on_disconnect is not None:
                    self._on_disconnect()
            else:
                sending.result()
        finally:
            sending.cancel()
            watching.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
            await self._pieces.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
