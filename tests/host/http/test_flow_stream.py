"""Streams of runs over LangGraph's own client: every mode, cut and taken up again, ended when the end is durable."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError
from langgraph_sdk.schema import StreamPart
from tests.host.http.proxy import proxied
from tests.host.http.test_flow_runs import begun
from tests.host.http.test_flow_threads import unique
from tests.host.http.test_sse import parsed
from tests.support.waiting import until

from agentvisor.core.ids import RunId
from agentvisor.host.app import Host
from agentvisor.host.streams import RunStreams

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


async def parts(stream: AsyncIterator[StreamPart]) -> list[StreamPart]:
    return [part async for part in stream]


async def collect(stream: AsyncIterator[StreamPart], into: list[StreamPart]) -> None:
    async for part in stream:
        into.append(part)  # noqa: PERF401 - `extend` would show them at the end only


def told(found: list[StreamPart]) -> list[tuple[str, Any]]:
    return [(part.event, part.data) for part in found]


async def test_values_and_updates_and_what_the_agent_writes_come_in_order(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    created: list[Any] = []
    found = await parts(
        sdk.runs.stream(
            named,
            "waiting",
            input={"count": 1},
            stream_mode=["values", "updates", "custom"],
            on_run_created=created.append,
        )
    )
    [run] = await sdk.runs.list(named)
    assert run["status"] == "success"
    assert created == [{"run_id": run["run_id"], "thread_id": named}]
    first, *others = told(found)
    assert first == ("metadata", {"run_id": run["run_id"], "attempt": 1})
    assert others == [
        ("values", {"count": 1, "log": []}),
        ("custom", {"working": 1}),
        ("updates", {"work": {"count": 2, "log": ["worked"]}}),
        ("values", {"count": 2, "log": ["worked"]}),
        ("updates", {"wait": {"log": ["waited"]}}),
        ("values", {"count": 2, "log": ["worked", "waited"]}),
    ]
    numbers = [int(part.id or 0) for part in found]
    assert numbers == sorted(set(numbers))


async def test_messages_grow_or_come_as_chunks(sdk: LangGraphClient) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    named = (await sdk.threads.create())["thread_id"]
    grown = told(await parts(sdk.runs.stream(named, "talking", input=asked, stream_mode="messages")))
    assert [name for name, _ in grown[:3]] == ["metadata", "messages/metadata", "messages/partial"]
    texts = [data[0]["content"] for name, data in grown if name == "messages/partial"]
    assert texts == ["hello", "hello ", "hello big", "hello big ", "hello big world"]
    assert {data[0]["type"] for name, data in grown if name == "messages/partial"} == {"ai"}
    [announced] = [data for name, data in grown if name == "messages/metadata"]
    assert next(iter(announced.values()))["metadata"]["langgraph_node"] == "model"

    named = (await sdk.threads.create())["thread_id"]
    chunks = told(await parts(sdk.runs.stream(named, "talking", input=asked, stream_mode="messages-tuple")))
    assert [name for name, _ in chunks] == ["metadata", *["messages"] * 5]
    assert "".join(data[0]["content"] for _, data in chunks[1:]) == "hello big world"
    assert chunks[1][1][0]["type"] == "AIMessageChunk"


async def test_a_failed_run_ends_its_stream_with_the_error(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    found = told(await parts(sdk.runs.stream(named, "failing", input={"count": 0}, stream_mode="updates")))
    assert found[-1] == ("error", {"error": "ValueError", "message": "boom!"})
    assert (await sdk.threads.get(named))["status"] == "error"


async def test_a_question_ends_the_stream_with_its_text(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    found = told(await parts(sdk.runs.stream(named, "asking", input={"count": 0}, stream_mode="updates")))
    assert found[-1][0] == "updates"
    [question] = found[-1][1]["__interrupt__"]
    assert question["value"] == {"question": "sure?"}
    assert (await sdk.threads.get(named))["status"] == "interrupted"


async def test_tasks_and_checkpoints_are_passed_on(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    stream = sdk.runs.stream(named, "waiting", input={"count": 0}, stream_mode=["tasks", "checkpoints", "debug"])
    found = told(await parts(stream))
    assert {name for name, _ in found} == {"metadata", "tasks", "checkpoints", "debug"}
    assert [data["name"] for name, data in found if name == "tasks" and "input" in data] == ["work", "wait"]


async def test_a_reader_who_comes_late_sees_the_live_run_from_its_start(sdk: LangGraphClient, gate: Path) -> None:
    named, run_id = await begun(sdk, gate)
    whole, filtered = list[StreamPart](), list[StreamPart]()
    reading = asyncio.gather(
        collect(sdk.runs.join_stream(named, run_id), whole),
        collect(sdk.runs.join_stream(named, run_id, stream_mode="updates"), filtered),
    )
    await until(lambda: whole and filtered)
    gate.touch()
    await reading
    assert [name for name, _ in told(whole)] == ["metadata", *["values"] * 3]
    assert [name for name, _ in told(filtered)] == ["metadata"]
    assert await parts(sdk.runs.join_stream(named, run_id)) == []


async def test_a_mode_that_no_run_has_is_refused_where_a_run_is_joined(sdk: LangGraphClient, gate: Path) -> None:
    named, run_id = await begun(sdk, gate)
    with pytest.raises(UnprocessableEntityError, match="stream mode 'nope' is none of a run's: use values, "):
        await parts(sdk.runs.join_stream(named, run_id, stream_mode=["values", "nope"]))  # type: ignore[list-item]
    gate.touch()


async def test_a_reader_goes_on_after_every_event_it_may_have_been_cut_at(sdk: LangGraphClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    for mode in ("messages-tuple", "messages"):
        found = await parts(sdk.runs.stream(named, "talking", input=asked, stream_mode=[mode, "values"]))  # pyright: ignore[reportArgumentType]
        [run, *_] = await sdk.runs.list(named)
        numbers = [part.id for part in found]
        for number in dict.fromkeys(numbers):
            rest = sdk.runs.join_stream(named, run["run_id"], last_event_id=number, stream_mode=[mode, "values"])  # pyright: ignore[reportArgumentType]
            # An event without a number of its own shows the one before it.
            assert told(await parts(rest)) == told(found[numbers.index(number) + 1 :])
        # LangGraph's client goes on at the Location, which names no modes.
        again = sdk.runs.join_stream(named, run["run_id"], last_event_id=numbers[0])
        assert told(await parts(again)) == told(found[1:])
        whole = sdk.runs.join_stream(named, run["run_id"], last_event_id="-1", stream_mode=[mode, "values"])  # pyright: ignore[reportArgumentType]
        assert told(await parts(whole)) == told(found)


async def test_langgraphs_client_sees_each_event_once_over_a_connection_that_is_cut(
    sdk: LangGraphClient, host: Host, gate: Path
) -> None:
    named = (await sdk.threads.create())["thread_id"]
    async with proxied(host.url) as proxy, get_client(url=proxy.url) as cut_off:
        found: list[StreamPart] = []
        stream = cut_off.runs.stream(named, "waiting", input={"gate": str(gate)}, stream_mode=["values", "custom"])
        reading = asyncio.create_task(collect(stream, found))
        await until(gate.with_suffix(".started").exists)
        await until(lambda: len(found) == 4)
        proxy.cut()
        gate.touch()
        await asyncio.wait_for(reading, 30)
    assert proxy.connections > 1
    assert [(name, data.get("log")) for name, data in told(found)] == [
        ("metadata", None),
        ("values", []),
        ("custom", None),
        ("values", ["worked"]),
        ("values", ["worked", "waited"]),
    ]


async def test_what_another_host_streamed_is_a_gap_and_then_the_values(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    named = (await sdk.threads.create())["thread_id"]
    run = await sdk.runs.create(named, "waiting", input={"count": 1})
    await sdk.runs.join(named, run["run_id"])
    found = told(await parts(sdk.runs.join_stream(named, run["run_id"], last_event_id="12345", stream_mode="values")))
    assert found[0][0] == "gap"
    assert found[-1] == ("values", {"count": 2, "log": ["worked", "waited"]})


async def test_a_run_of_another_host_ends_with_its_values(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The run's events go nowhere: as on a host that only answers HTTP.
    monkeypatch.setattr(RunStreams, "publish", lambda *_: None)
    monkeypatch.setattr(RunStreams, "attempt_started", lambda *_, **__: None)
    named, run_id = await begun(sdk, gate)
    place = f"/threads/{named}/runs/{run_id}/stream"
    async with http.stream("GET", place) as response:
        gate.touch()
        body = await response.aread()
    assert [(name, data) for name, data, _ in await parsed(body)] == [
        ("metadata", {"run_id": run_id, "attempt": 1}),
        ("gap", {"run_id": run_id, "reason": "the events went with the host that had them"}),
        ("values", {"count": 1, "log": ["worked", "waited"], "gate": str(gate)}),
    ]


async def test_a_reader_who_leaves_cancels_only_if_asked(
    sdk: LangGraphClient, http: httpx.AsyncClient, gate: Path
) -> None:
    named = unique()
    body = {"assistant_id": "waiting", "input": {"gate": str(gate)}, "if_not_exists": "create"}
    async with http.stream("POST", f"/threads/{named}/runs/stream", json=body) as response:
        place = response.headers["content-location"]
        assert response.headers["location"] == f"{place}/stream"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["content-type"].startswith("text/event-stream")
        await until(gate.with_suffix(".started").exists)
    assert (await http.get(place)).json()["status"] == "running"
    async with http.stream("GET", f"{place}/stream?cancel_on_disconnect=true") as response:
        await anext(response.aiter_bytes())

    async def interrupted() -> bool:
        return (await http.get(place)).json()["status"] == "interrupted"

    await until(interrupted)


async def test_an_unknown_run_is_an_error_event(sdk: LangGraphClient, http: httpx.AsyncClient) -> None:
    named = (await sdk.threads.create())["thread_id"]
    found = told(await parts(sdk.runs.join_stream(named, RunId("unknown"))))
    assert [name for name, _ in found] == ["error"]
    assert found[0][1]["error"] == "NotFound"
    of_no_thread = await http.get("/threads/unknown/runs/unknown/stream")
    assert (of_no_thread.status_code, of_no_thread.text.splitlines()[0]) == (200, "event: error")


async def test_a_run_without_a_thread_is_streamed_and_leaves_none(
    sdk: LangGraphClient, http: httpx.AsyncClient
) -> None:
    created: list[Any] = []
    stream = sdk.runs.stream(None, "plain", input=1, stream_mode="custom", on_run_created=created.append)
    assert [data for name, data in told(await parts(stream)) if name == "custom"] == [{"step": 1}, {"step": 2}]

    async def gone() -> bool:
        return (await http.get(f"/threads/{created[0]['thread_id']}")).status_code == 404

    await until(gone)


async def test_what_a_plain_agent_returns_are_the_values_at_the_end_of_its_stream(sdk: LangGraphClient) -> None:
    found = told(await parts(sdk.runs.stream(None, "plain", input=1, stream_mode=["values", "custom"])))
    assert [one for one in found if one[0] != "metadata"] == [
        ("custom", {"step": 1}),
        ("custom", {"step": 2}),
        ("values", {"echo": 1}),
    ]
    unasked = told(await parts(sdk.runs.stream(None, "plain", input=1, stream_mode="custom")))
    assert "values" not in dict(unasked)
    silent = told(await parts(sdk.runs.stream(None, "nothing", input=1, stream_mode="values")))
    assert [name for name, _ in silent] == ["metadata"]
