"""Reads a thread's events as they go over the wire, until one is there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from langgraph_sdk.sse import SSEDecoder, aiter_lines_raw

ALL = ["values", "updates", "messages", "tools", "lifecycle", "input", "tasks", "checkpoints", "custom"]
SECONDS = 30

Frame = dict[str, Any]
Wanted = Callable[[Frame], bool]


def is_root(event: str, run_id: str = "") -> Wanted:
    """Whether a run has come to that; without an id, any run."""

    def told(frame: Frame) -> bool:
        params = frame.get("params", {})
        return (
            frame.get("method") == "lifecycle"
            and params["namespace"] == []
            and params["data"]["event"] == event
            and (not run_id or run_id in frame["event_id"])
        )

    return told


@asynccontextmanager
async def subscribed(
    http: httpx.AsyncClient, thread: str, channels: list[str] | None = None, place: str = "stream/events", **more: Any
) -> AsyncIterator[AsyncIterator[Frame]]:
    """The thread's events, from what is kept on."""
    body = {"channels": channels or ALL, **more}
    async with http.stream("POST", f"/threads/{thread}/{place}", json=body) as response:
        assert response.status_code == 200, await response.aread()
        yield _frames(response)


async def _frames(response: httpx.Response) -> AsyncIterator[Frame]:
    decoder = SSEDecoder()
    async for line in aiter_lines_raw(response):
        part = decoder.decode(bytes(line))
        if part is not None and isinstance(part.data, dict):
            if part.data["type"] == "event":
                assert part.id == str(part.data["seq"])
                assert part.event == part.data["method"]
            yield part.data


async def up_to(frames: AsyncIterator[Frame], wanted: Wanted) -> list[Frame]:
    """The events up to the one that is wanted."""
    found: list[Frame] = []
    async with asyncio.timeout(SECONDS):
        async for frame in frames:
            found.append(frame)
            if wanted(frame):
                return found
    raise AssertionError(f"the stream has ended: {found}")


async def events(
    http: httpx.AsyncClient, thread: str, wanted: Wanted, channels: list[str] | None = None, **more: Any
) -> list[Frame]:
    """The same of a subscription of its own."""
    async with subscribed(http, thread, channels, **more) as frames:
        return await up_to(frames, wanted)


async def command(http: httpx.AsyncClient, thread: str, method: str, **params: Any) -> Frame:
    """The reply to a command."""
    response = await http.post(f"/threads/{thread}/commands", json={"id": 7, "method": method, "params": params})
    assert response.status_code == 200
    reply: Frame = response.json()
    assert reply["id"] == 7
    return reply


async def started(http: httpx.AsyncClient, thread: str, agent: str, **params: Any) -> str:
    """The id of a run that was started."""
    reply = await command(http, thread, "run.start", assistant_id=agent, **params)
    assert reply["type"] == "success", reply
    return str(reply["result"]["run_id"])


def shown(frames: list[Frame], *methods: str) -> list[tuple[str, Any]]:
    """Method and data of the events, or of some of them."""
    return [
        (one["method"], one["params"]["data"])
        for one in frames
        if one["type"] == "event" and (not methods or one["method"] in methods)
    ]
