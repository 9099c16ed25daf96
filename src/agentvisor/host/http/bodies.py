"""Bodies are bounded before they are read whole, and text that is JSON counts as JSON (Studio sends text/plain)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentvisor.core.errors import ValueTooLarge
from agentvisor.host.http.errors import error_response, refusal

_PLAIN = ("", "text/plain", "application/x-www-form-urlencoded")
"""Also what curl says of `-d '{...}'`."""


STREAMED = frozenset({"/threads/import"})
"""Routes that take a file, piece by piece."""


class BoundedBodies:
    """Answers 413 for a body over the limit, 408 for a slow one; the route behind gets the whole body at once."""

    def __init__(self, app: ASGIApp, max_body: int, read_timeout: float, max_import: int) -> None:
        """`read_timeout`: seconds for the whole body; of a file that is streamed, for each piece."""
        self._app = app
        self._max_body = max_body
        self._max_import = max_import
        self._read_timeout = read_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "POST" and scope["path"] in STREAMED:
            await self._stream(scope, receive, send)
            return
        headers = MutableHeaders(scope=scope)
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._max_body:
            await self._refuse(int(declared), scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._read_timeout):
                body = await self._read(receive)
        except TimeoutError:
            text = f"the body did not come within {self._read_timeout:g} s (http.read_timeout)"
            await refusal(408, text, {"connection": "close"})(scope, receive, send)
            return
        if body is None:
            return  # the client is gone
        if len(body) > self._max_body:
            await self._refuse(len(body), scope, receive, send)
            return
        if body and _kind(headers) in _PLAIN:
            headers["content-type"] = "application/json"
        await self._app(scope, _Replay(body, receive), send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the route take the body piece by piece; where it leaves some, the connection ends with the answer."""
        more = True
        size = 0

        async def piece() -> Message:
            nonlocal more, size
            try:
                async with asyncio.timeout(self._read_timeout):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"no piece of the file came within {self._read_timeout:g} s (http.read_timeout)"
                ) from None
            size += len(message.get("body", b""))
            more = bool(message.get("more_body", False))
            if size > self._max_import:
                raise ValueTooLarge(
                    f"the file has {size} bytes or more, and the limit is {self._max_import} (http.max_import)",
                    limit=str(self._max_import),
                )
            return message

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and more:
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        await self._app(scope, piece, answer)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body, or as much of it as shows that it is too large."""
        chunks: list[bytes] = []
        size, more = 0, True
        while more and size <= self._max_body:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk: bytes = message.get("body", b"")
            chunks.append(chunk)
            size += len(chunk)
            more = bool(message.get("more_body", False))
        return _joined(chunks)

    async def _refuse(self, size: int, scope: Scope, receive: Receive, send: Send) -> None:
        error = ValueTooLarge(
            f"the body has {size} bytes or more, and the limit is {self._max_body} (http.max_body)",
            limit=str(self._max_body),
        )
        response = error_response(error)
        # The rest of the body is not read: the connection cannot be used again.
        response.headers["connection"] = "close"
        await response(scope, receive, send)


class _Replay:
    """Hands the body out once, then what the client says later (that it is gone)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _joined(chunks: Sequence[bytes]) -> bytes:
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _kind(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
