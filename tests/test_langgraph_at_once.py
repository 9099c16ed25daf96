"""The checkpointer in many threads and tasks at once: values are those at the call, and shared where they are equal."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.client.hosts import listening
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import CHECKPOINT, THREAD, at, checkpoint, double, put, saver, transport, way

from agentvisor.client.transport import Transport
from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["double", "saver", "transport", "way"]


async def test_values_are_serialised_before_the_first_await(saver: AgentVisorCheckpointer) -> None:
    items = ["at the call"]
    one = checkpoint({"a": items}, {"a": "1"})
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_id": one["id"]}}
    tasks = [
        asyncio.ensure_future(saver.aput(THREAD, one, {}, {"a": "1"})),
        asyncio.ensure_future(saver.aput_writes(config, [("a", items)], "task")),
    ]
    await asyncio.sleep(0)
    items.append("later")
    await asyncio.gather(*tasks)
    found = await saver.aget_tuple(THREAD)
    assert at(found) == {"a": ["at the call"]}
    assert found is not None
    assert found.pending_writes == [("task", "a", ["at the call"])]
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(THREAD) is None


def test_six_threads_write_namespaces_of_their_own_and_share_values(saver: AgentVisorCheckpointer) -> None:
    shared = ["the same"] * 300

    def work(number: int) -> None:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": f"node:{number}"}}
        for step in range(20):
            version = str(step)
            writes: Any = {"configurable": {**config["configurable"], "checkpoint_id": "c"}}
            saver.put_writes(writes, [("n", step)], f"{step}")
            one = checkpoint({"n": [number] * step, "s": shared}, {"n": version, "s": version})
            config = saver.put(config, one, {}, {"n": version, "s": version})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    for number in range(6):
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": f"node:{number}"}}
        found = list(saver.list(config))
        assert [at(one)["n"] for one in found] == [[number] * step for step in reversed(range(20))]
        assert all(at(one)["s"] == shared for one in found)


def test_a_clone_for_more_types_shares_what_is_known(transport: Transport, double: StoreDouble) -> None:
    saver = AgentVisorCheckpointer(transport=transport, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    clone = saver.with_allowlist([("tests.nowhere", "Thing")])
    assert clone is not saver
    assert clone.serde is not saver.serde
    value = {"a": [AIMessage("x" * 1000, id="1")]}
    stored = saver.put(THREAD, checkpoint(value, {"a": "1"}), {}, {"a": "1"})
    clone.put(stored, checkpoint(value, {"a": "2"}), {}, {"a": "2"})
    assert [len(put.blobs) for put in double.puts()] == [1, 0]


def test_savers_of_one_host_share_what_is_known(double: StoreDouble) -> None:
    with listening(double) as endpoint:
        first, second = AgentVisorCheckpointer(endpoint=endpoint), AgentVisorCheckpointer(endpoint=endpoint)
        stored = first.put(THREAD, checkpoint({"a": "x" * 500}, {"a": "1"}), {}, {"a": "1"})
        second.put(stored, checkpoint({"a": "x" * 500, "b": 1}, {"a": "1", "b": "1"}), {}, {"b": "1"})
        assert [len(put.blobs) for put in double.puts()] == [1, 1]


class SlowToSerialise(JsonPlusSerializer):
    """Holds writes of "slow" back until they may pass."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_pass = threading.Event(), threading.Event()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj == "slow":
            self.begun.set()
            assert self.may_pass.wait(10)
        return super().dumps_typed(obj)


def test_a_checkpoint_is_sent_after_the_writes_that_were_begun_before_it(
    transport: Transport, double: StoreDouble
) -> None:
    serde = SlowToSerialise()
    saver = AgentVisorCheckpointer(transport=transport, serde=serde)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(saver.put_writes, CHECKPOINT, [("a", "slow")], "task")
        assert serde.begun.wait(10)
        putting = pool.submit(put, saver, CHECKPOINT, {"a": 1}, {"a": "1"})
        with pytest.raises(TimeoutError):
            putting.result(0.05)
        assert double.requests == []
        serde.may_pass.set()
        writing.result(10)
        putting.result(10)
    assert [request.WhichOneof("kind") for request in double.requests] == ["put_writes", "put"]
