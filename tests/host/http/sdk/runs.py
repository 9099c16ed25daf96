"""Methods of runs."""

import asyncio
from typing import Any

import pytest
from langgraph_sdk.errors import NotFoundError
from tests.host.http.sdk.table import Client, of
from tests.support.waiting import until


@of("runs.create")
async def create(client: Client) -> None:
    thread = await client.thread()
    run = await client.runs.create(thread, "waiting", input={"count": 1}, metadata={"a": 1})
    assert (run["status"] in ("pending", "running"), run["metadata"]["a"]) == (True, 1)
    assert await client.status(thread, run["run_id"]) == "success"
    assert (await client.threads.get(thread))["values"] == {"count": 2, "log": ["worked", "waited"]}


@of("runs.create_batch")
async def create_batch(client: Client) -> None:
    payloads: Any = [{"assistant_id": "waiting", "input": {"count": n}, "on_completion": "keep"} for n in (1, 2)]
    runs = await client.runs.create_batch(payloads)
    ended = [await client.runs.join(one["thread_id"], one["run_id"]) for one in runs]
    assert [one["count"] for one in ended] == [2, 3]  # type: ignore[call-overload]


@of("runs.wait")
async def wait(client: Client) -> None:
    assert await client.runs.wait(None, "waiting", input={"count": 1}) == {"count": 2, "log": ["worked", "waited"]}
    failed = await client.runs.wait(None, "failing", input={"count": 1}, raise_error=False)
    assert failed == {"__error__": {"error": "ValueError", "message": "boom!"}}


@of("runs.stream")
async def stream(client: Client) -> None:
    thread, created = await client.thread(), []
    parts = client.runs.stream(
        thread, "waiting", input={"count": 1}, stream_mode=["updates", "custom"], on_run_created=created.append
    )
    events = [(part.event, part.data) async for part in parts]
    [run] = await client.runs.list(thread)
    assert created == [{"run_id": run["run_id"], "thread_id": thread}]
    assert events == [
        ("metadata", {"run_id": run["run_id"], "attempt": 1}),
        ("custom", {"working": 1}),
        ("updates", {"work": {"count": 2, "log": ["worked"]}}),
        ("updates", {"wait": {"log": ["waited"]}}),
    ]


@of("runs.list")
async def list_(client: Client) -> None:
    thread = await client.thread("waiting")
    await client.runs.wait(thread, "failing", input={"count": 1}, raise_error=False)
    assert [one["status"] for one in await client.runs.list(thread)] == ["error", "success"]
    assert await client.runs.list(thread, status="success", select=["status"]) == [{"status": "success"}]
    assert await client.runs.list(thread, limit=1, offset=1, select=["status"]) == [{"status": "success"}]


@of("runs.get")
async def get(client: Client) -> None:
    thread, run = await client.live()
    found = await client.runs.get(thread, run)
    assert (found["run_id"], found["thread_id"], found["status"]) == (run, thread, "running")
    client.gate.touch()
    assert await client.status(thread, run) == "success"


@of("runs.join")
async def join(client: Client) -> None:
    thread, run = await client.live()
    joining = asyncio.create_task(client.runs.join(thread, run))
    client.gate.touch()
    values: Any = await joining
    assert values["log"] == ["worked", "waited"]


@of("runs.join_stream")
async def join_stream(client: Client) -> None:
    thread, run = await client.live()
    seen: list[str] = []
    async for part in client.runs.join_stream(thread, run, stream_mode="values"):
        client.gate.touch()
        seen.append(part.event)
    assert seen[0] == "metadata"
    assert set(seen[1:]) == {"values"}
    assert await client.status(thread, run) == "success"


@of("runs.cancel")
async def cancel(client: Client) -> None:
    thread, run = await client.live()
    await client.runs.cancel(thread, run, wait=True)
    assert (await client.runs.get(thread, run))["status"] == "interrupted"
    assert (await client.threads.get(thread))["status"] == "interrupted"


@of("runs.cancel_many")
async def cancel_many(client: Client) -> None:
    thread, live = await client.live()
    pending = (await client.runs.create(thread, "waiting", input={"count": 1}))["run_id"]
    await client.runs.cancel_many(thread_id=thread, run_ids=[live, pending])
    assert [await client.status(thread, one) for one in (live, pending)] == ["interrupted", "interrupted"]


@of("runs.delete")
async def delete(client: Client) -> None:
    thread = await client.thread("waiting")
    [run] = await client.runs.list(thread)
    await client.runs.delete(thread, run["run_id"])
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])
    assert await client.runs.list(thread) == []

    async def can_run() -> bool:
        return (await client.threads.get(thread))["status"] != "busy"

    await until(can_run)
