"""What those who follow a thread are told of a change of its state that no run has made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart
from langgraph_sdk.sse import SSEDecoder, aiter_lines_raw
from tests.host.http.agents import asking
from tests.host.http.events.reading import ALL, is_root, started, subscribed, up_to

from agentvisor.host.app import Host
from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@asynccontextmanager
async def following(
    http: httpx.AsyncClient, thread: str, modes: str, after: str | None = None
) -> AsyncIterator[AsyncIterator[StreamPart]]:
    headers = {} if after is None else {"Last-Event-ID": after}
    params = {"stream_modes": modes}
    async with http.stream("GET", f"/threads/{thread}/stream", params=params, headers=headers) as response:
        assert response.status_code == 200

        async def parts() -> AsyncIterator[StreamPart]:
            decoder = SSEDecoder()
            async for line in aiter_lines_raw(response):
                if part := decoder.decode(bytes(line)):
                    yield part

        yield parts()


async def next_of(parts: AsyncIterator[StreamPart]) -> tuple[str, Any, str | None]:
    async with asyncio.timeout(30):
        part = await anext(parts)
    return part.event, part.data, part.id


async def with_a_run(sdk: LangGraphClient) -> str:
    thread = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(thread, "waiting", input={"count": 1})
    return thread


async def test_the_state_is_told_after_each_update_and_nothing_of_runs(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    thread = await with_a_run(sdk)
    numbers = []
    async with following(http, thread, "state_update") as parts:
        for count in (50, 60):
            made = await sdk.threads.update_state(thread, {"count": count}, as_node="work")
            event, data, number = await next_of(parts)
            state = await sdk.threads.get_state(thread)
            # As LangGraph's server: the state as GET .../state has it, and of which thread.
            assert (event, data) == ("state_update", {"state": state, "thread_id": thread})
            assert data["state"]["values"] == {"count": count, "log": ["worked", "waited"]}
            assert data["state"]["checkpoint"]["checkpoint_id"] == made["checkpoint_id"]  # type: ignore[typeddict-item]
            assert (data["state"]["next"], data["state"]["metadata"]["source"]) == (["wait"], "update")
            numbers.append(int(number or 0))
        # A run, and what leaves the state as it is, is not told: the next event is that of the next update.
        await sdk.runs.wait(thread, "waiting", input={"count": 1})
        await sdk.threads.update(thread, metadata={"a": 1})
        (await http.put(f"/threads/{thread}/thread-state/k", json={"value": 1})).raise_for_status()
        refused = await http.post(f"/threads/{thread}/state", json={"values": {"count": 1}, "as_node": "nobody"})
        assert refused.status_code == 400
        await sdk.threads.update_state(thread, {"count": 70})
        event, data, number = await next_of(parts)
        assert (event, data["state"]["values"]["count"]) == ("state_update", 70)
        numbers.append(int(number or 0))
    assert numbers == sorted(set(numbers))


async def test_an_update_is_told_between_the_runs_in_order(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    thread = await with_a_run(sdk)
    async with following(http, thread, "lifecycle,state_update") as parts:
        await sdk.threads.update_state(thread, {"count": 50}, as_node="work")
        told = [await next_of(parts)]
        run = await sdk.runs.create(thread, "waiting", input={"count": 7})
        told += [await next_of(parts), await next_of(parts)]
    assert [event for event, _, _ in told] == ["state_update", "metadata", "metadata"]
    assert told[-1][1] == {"status": "run_done", "run_id": run["run_id"]}
    numbers = [int(number) for _, _, number in told if number]
    assert len(numbers) == 3
    assert numbers == sorted(set(numbers))


async def test_who_was_away_is_told_of_the_update_that_was_made_meanwhile_and_once(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    thread = await with_a_run(sdk)
    async with following(http, thread, "state_update") as parts:
        await sdk.threads.update_state(thread, {"count": 50})
        _, _, seen = await next_of(parts)
    await sdk.threads.update_state(thread, {"count": 60})
    async with following(http, thread, "state_update", after=seen) as parts:
        _, data, last = await next_of(parts)
        assert data["state"]["values"]["count"] == 60
    async with following(http, thread, "state_update", after=last) as parts:
        await sdk.threads.update_state(thread, {"count": 70})
        assert (await next_of(parts))[1]["state"]["values"]["count"] == 70, "60 was told before"


async def test_an_update_by_a_client_outside_is_told_too(
    sdk: LangGraphClient, http: httpx.AsyncClient, host: Host
) -> None:
    thread = (await sdk.threads.create())["thread_id"]
    await sdk.runs.wait(thread, "asking", input={"count": 1})
    graph = asking.compile(AgentVisorCheckpointer(endpoint=host.url))
    async with following(http, thread, "state_update") as parts:
        await asyncio.to_thread(graph.update_state, {"configurable": {"thread_id": thread}}, {"count": 50})
        event, data, number = await next_of(parts)
    assert (event, data["state"]["values"]["count"], number) == ("state_update", 50, None)


@pytest.mark.parametrize("place", ["stream", "stream/events"])
async def test_the_event_protocol_has_no_event_for_it(
    sdk: LangGraphClient, http: httpx.AsyncClient, place: str
) -> None:
    """Its channels are of what runs do: the next run's values have what was written."""
    thread = await with_a_run(sdk)
    async with subscribed(http, thread, ALL, place) as frames:
        await up_to(frames, is_root("completed"))
        await sdk.threads.update_state(thread, {"count": 50})
        run_id = await started(http, thread, "waiting", input={"log": ["again"]})
        first, *found = await up_to(frames, is_root("completed", run_id))
    assert is_root("running", run_id)(first)
    values = [one["params"]["data"] for one in found if one["method"] == "values"]
    assert values[0]["count"] == 50
    refused = await http.post(f"/threads/{thread}/{place}", json={"channels": ["state_update"]})
    assert refused.status_code == 400
    assert "state_update" in refused.json()["detail"]
