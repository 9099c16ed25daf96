"""Methods of threads."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.errors import NotFoundError
from tests.host.http.sdk.table import Client, of
from tests.support.waiting import until


@of("threads.create")
async def create(client: Client) -> None:
    named = str(uuid4())
    created = await client.threads.create(thread_id=named, metadata={"a": 1})
    assert (created["thread_id"], created["status"], created["metadata"]) == (named, "idle", {"a": 1})
    assert (await client.threads.create(thread_id=named, if_exists="do_nothing"))["metadata"] == {"a": 1}


@of("threads.get")
async def get(client: Client) -> None:
    thread = await client.threads.get(await client.thread("asking"))
    assert (thread["status"], thread["values"]["count"]) == ("interrupted", 2)
    [[asked]] = thread["interrupts"].values()
    assert asked["value"] == {"question": "sure?"}


@of("threads.update")
async def update(client: Client) -> None:
    thread = await client.thread()
    await client.threads.update(thread, metadata={"b": 2})
    assert (await client.threads.get(thread))["metadata"] == {**client.mark, "b": 2}


@of("threads.delete")
async def delete(client: Client) -> None:
    thread = await client.thread("waiting")
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


@of("threads.search")
async def search(client: Client) -> None:
    first, second = await client.thread("waiting"), await client.thread("asking")

    async def found() -> bool:
        threads = await client.threads.search(metadata=client.mark, values={"count": 2})
        return {one["thread_id"] for one in threads} == {first, second}

    await until(found)
    [asks] = await client.threads.search(metadata=client.mark, status="interrupted", select=["thread_id"])
    assert asks == {"thread_id": second}


@of("threads.count")
async def count(client: Client) -> None:
    for _ in range(3):
        await client.thread()

    async def counted() -> bool:
        return await client.threads.count(metadata=client.mark) == 3

    await until(counted)


@of("threads.copy")
async def copy(client: Client) -> None:
    thread = await client.thread("asking")
    copied: Any = await client.threads.copy(thread)
    answered = await client.runs.wait(copied["thread_id"], "asking", command={"resume": "yes"})
    assert answered["log"] == ["worked", "answer yes"]
    assert (await client.threads.get(thread))["status"] == "interrupted"


@of("threads.prune")
async def prune(client: Client) -> None:
    kept, gone = await client.thread("waiting"), await client.thread("waiting")
    assert await client.threads.prune([kept], strategy="keep_latest") == {"pruned_count": 1}
    [state] = await client.threads.get_history(kept, limit=10)
    assert state["values"]["count"] == 2
    assert await client.threads.prune([gone], strategy="delete") == {"pruned_count": 1}
    with pytest.raises(NotFoundError):
        await client.threads.get(gone)


@of("threads.get_state")
async def get_state(client: Client) -> None:
    thread = await client.thread("nested")
    state = await client.threads.get_state(thread, subgraphs=True)
    assert state["next"] == ["child"]
    inner: Any = state["tasks"][0]["state"]
    assert inner["next"] == ["ask"]
    within = await client.threads.get_state(thread, checkpoint=inner["checkpoint"])
    assert within["values"] == {"count": 2, "log": ["worked"]}
    first = (await client.threads.get_history(thread, limit=10))[-1]
    past = await client.threads.get_state(thread, checkpoint_id=first["checkpoint"]["checkpoint_id"])
    assert past["next"] == ["__start__"]


@of("threads.update_state")
async def update_state(client: Client) -> None:
    thread = await client.thread("asking")
    updated = await client.threads.update_state(thread, {"log": ["told"]}, as_node="work")
    state = await client.threads.get_state(thread)
    assert state["checkpoint"]["checkpoint_id"] == updated["checkpoint"]["checkpoint_id"]
    assert (state["values"]["log"], state["next"]) == (["worked", "told"], ["ask"])


@of("threads.get_history")
async def get_history(client: Client) -> None:
    thread = await client.thread("waiting")
    history = await client.threads.get_history(thread, limit=10)
    assert [one["next"] for one in history] == [[], ["wait"], ["work"], ["__start__"]]
    for before in (history[1]["checkpoint"]["checkpoint_id"], history[1]["checkpoint"]):
        older = await client.threads.get_history(thread, limit=10, before=before)  # type: ignore[arg-type]
        assert [one["next"] for one in older] == [["work"], ["__start__"]]


@of("threads.join_stream")
async def join_stream(client: Client) -> None:
    thread = await client.thread()
    seen: list[Any] = []

    async def listen() -> None:
        async for part in await client.threads.join_stream(thread, stream_mode=["run_modes"]):
            seen.append(part)
            if isinstance(part.data, dict) and part.data.get("status") == "run_done":
                return

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        while not listening.done():
            # An open stream says nothing until something happens: a run that came before it is not told.
            run = await client.runs.create(thread, "waiting", input={"count": 1}, stream_mode=["updates"])
            await client.runs.join(thread, run["run_id"])
    assert {"work": {"count": 2, "log": ["worked"]}} in [part.data for part in seen if part.event == "updates"]


@of("threads.stream")
async def stream(client: Client) -> None:
    thread = await client.thread()
    async with client.threads.stream(thread, assistant_id="asking") as session:
        await session.run.start(input={"count": 1})
        await until(lambda: session.interrupts)
        await session.run.respond("yes")
        assert (await session.output.with_timeout(10))["log"] == ["worked", "answer yes"]
    assert (await client.threads.get(thread))["status"] == "idle"
