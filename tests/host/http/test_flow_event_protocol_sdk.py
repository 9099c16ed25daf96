"""LangGraph's own client in Python on a thread's events, over both of its transports."""

import asyncio
from typing import Any, Literal

import pytest
from langgraph_sdk.client import LangGraphClient
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]

HI = {"messages": [{"role": "user", "content": "hi"}]}
SECONDS = 20
Transport = Literal["sse", "websocket"]


async def all_of(projection: Any) -> list[Any]:
    async with asyncio.timeout(SECONDS):
        return [one async for one in projection]


@pytest.fixture(params=["sse", "websocket"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


async def test_a_thread_is_streamed_run_after_run(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="talking", transport=transport) as thread:
        for said in (1, 2):
            started = await thread.run.start(input=HI)
            values, messages = await asyncio.gather(all_of(thread.values), all_of(thread.messages))
            assert [await one.text for one in messages] == ["hello big world"]
            assert len(values[-1]["messages"]) == said + 1
            run = await sdk.runs.get(thread.thread_id, started["run_id"])
            assert run["status"] == "success"
        async with asyncio.timeout(SECONDS):
            assert [one["content"] for one in (await thread.output)["messages"]] == ["hi", "hello big world", "hi"]


async def test_a_thread_of_earlier_runs_is_taken_up(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="waiting", transport=transport) as first:
        await first.run.start(input={"count": 1})
        await all_of(first.values)
    async with sdk.threads.stream(first.thread_id, assistant_id="waiting", transport=transport) as second:
        async with asyncio.timeout(SECONDS):
            assert (await second.output)["log"] == ["worked", "waited"]
        await second.run.start(input={"count": 5})
        # Not those of the run before: the reply to the command says where it ended.
        found = await all_of(second.values)
        assert [one["count"] for one in found[1:]] == [5, 6, 6]


async def test_a_question_is_answered_by_its_id(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="asking", transport=transport) as thread:
        await thread.run.start(input={"count": 1})
        await until(lambda: thread.interrupted)
        [asked] = thread.interrupts
        # The client reads `value`, which the protocol calls `payload`: it is there with the thread.
        waiting = (await sdk.threads.get(thread.thread_id))["interrupts"]
        assert [one["id"] for each in waiting.values() for one in each] == [asked["interrupt_id"]]
        await thread.run.respond("yes")
        async with asyncio.timeout(SECONDS):
            assert (await thread.output)["log"] == ["worked", "answer yes"]
        with pytest.raises(RuntimeError, match="no outstanding interrupt"):
            await thread.run.respond("again")


async def test_a_failed_run_raises_what_it_failed_with(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="failing", transport=transport) as thread:
        await thread.run.start(input={"count": 1})
        async with asyncio.timeout(SECONDS):
            with pytest.raises(RuntimeError, match="boom!"):
                await thread.output


async def test_subgraphs_are_found(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="nested_later", transport=transport) as thread:
        custom = asyncio.create_task(anext(thread.subscribe(["custom", "lifecycle"])))
        await thread.run.start(input={"count": 1})
        async with asyncio.timeout(SECONDS):
            inner = await anext(aiter(thread.subgraphs))
            assert (await custom)["params"]["data"]["event"] == "running"
        assert (inner.graph_name, inner.path[0].partition(":")[0]) == ("inner", "inner")


async def test_a_refused_command_is_raised(sdk: LangGraphClient, transport: Transport) -> None:
    async with sdk.threads.stream(assistant_id="nobody", transport=transport) as thread:
        with pytest.raises(RuntimeError, match=r"invalid_argument.*nobody"):
            await thread.run.start(input={})
