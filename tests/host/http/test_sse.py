"""Events on the wire: one line each, alive while nothing happens, and ended when nobody reads."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from langgraph_sdk.sse import SSEDecoder, aiter_lines_raw
from tests.support.waiting import until

from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.sse import HEARTBEAT, ServerEvent, wire, with_heartbeats


async def parsed(data: bytes) -> list[tuple[str, Any, str | None]]:
    decoder = SSEDecoder()
    response = httpx.Response(200, content=data)
    parts = [decoder.decode(bytes(line)) async for line in aiter_lines_raw(response)]
    return [(part.event, part.data, part.id) for part in parts if part is not None]


async def test_langgraphs_client_reads_what_is_written() -> None:
    data = (
        ServerEvent("values|a:1", b'{"text":"\xc3\xa9"}', 7).encode() + HEARTBEAT + ServerEvent("gap", b"{}").encode()
    )
    assert await parsed(data) == [("values|a:1", {"text": "é"}, "7"), ("gap", {}, "7")]


@pytest.mark.parametrize("evil", [b"{\r\n\r\nevent: error\r\ndata: {}\r\n\r\n}", b"{\n\ndata: 1\n\n}", b"{}\r\r"])
async def test_an_agent_cannot_forge_events(evil: bytes) -> None:
    data = ServerEvent("custom|\r\nevent: error\n", evil).encode()
    assert data.count(b"\n") == 4 - 1
    assert data.startswith(b"event: custom|  event: error \r\ndata: ")


async def numbers(count: int, released: asyncio.Event, closed: list[bool]) -> AsyncGenerator[int]:
    try:
        for number in range(count):
            yield number
        await released.wait()
    finally:
        closed.append(True)


async def test_silence_is_filled_with_signs_of_life() -> None:
    released, closed = asyncio.Event(), list[bool]()
    seen: list[int | None] = []
    async for item in with_heartbeats(numbers(2, released, closed), 0.01):
        seen.append(item)
        if seen.count(None) == 3:
            released.set()
    assert seen[:5] == [0, 1, None, None, None]
    assert closed == [True]


class Connection:
    """An ASGI connection whose client can leave."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    def serve(self, response: Callable[..., Awaitable[None]]) -> "asyncio.Task[None]":
        return asyncio.ensure_future(response({"type": "http"}, self.receive, self.send))


@pytest.fixture
def connection() -> Connection:
    return Connection()


def live(closed: list[bool], gone: list[bool], count: int = 1, *, ends: bool = False) -> LiveResponse:
    async def events() -> AsyncGenerator[ServerEvent]:
        released = asyncio.Event()
        if ends:
            released.set()
        async for number in numbers(count, released, closed):
            yield ServerEvent("values", b"%d" % number, number)

    return LiveResponse(wire(events(), 5), "text/event-stream", {"a": "b"}, lambda: gone.append(True))


async def test_a_client_that_leaves_ends_the_making_and_is_noticed(connection: Connection) -> None:
    closed, gone = list[bool](), list[bool]()
    serving = connection.serve(live(closed, gone))
    await until(lambda: len(connection.sent) == 2)
    connection.left.set()
    await asyncio.wait_for(serving, 5)
    assert (closed, gone) == ([True], [True])


async def test_a_host_that_stops_is_no_client_that_leaves(connection: Connection) -> None:
    closed, gone = list[bool](), list[bool]()
    serving = connection.serve(live(closed, gone))
    await until(lambda: len(connection.sent) == 2)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert (closed, gone) == ([True], [])


async def test_a_stream_that_ends_is_nobodys_leaving(connection: Connection) -> None:
    closed, gone = list[bool](), list[bool]()
    await asyncio.wait_for(connection.serve(live(closed, gone, 3, ends=True)), 5)
    assert (closed, gone) == ([True], [])
    assert connection.sent[0]["status"] == 200
    assert (b"a", b"b") in connection.sent[0]["headers"]
    assert b"".join(one.get("body", b"") for one in connection.sent).count(b"event: values") == 3
    assert connection.sent[-1]["more_body"] is False
