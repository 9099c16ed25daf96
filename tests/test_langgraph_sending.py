"""What a put sends: what changed and no more; and nothing is taken for stored that may not be."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.client.hosts import over_socketpair, way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import THREAD, at, checkpoint, double, put, saver, transport, way

from agentvisor.client.transport import Transport
from agentvisor.core.errors import Conflict, Corrupt, Unavailable
from agentvisor.langgraph import AgentVisorCheckpointer
from agentvisor.protocol.v1 import store_pb2

__all__ = ["double", "saver", "transport", "way"]


def message(number: int) -> AIMessage:
    words = random.Random(number)
    return AIMessage(" ".join(f"w{words.randrange(3000)}" for _ in range(250)), id=str(number))


def conversation(saver: AgentVisorCheckpointer, steps: range, start: Any = THREAD) -> Any:
    """A run of steps, each adding a message; `still` never changes after the first."""
    config, still = start, ["still"] * 200
    for step in steps:
        values = {"messages": [message(number) for number in range(step + 1)], "still": still, "n": step}
        new = {"messages": str(step), "n": str(step)} | ({} if step else {"still": "0"})
        config = saver.put(config, checkpoint(values, {**new, "still": "0"}), {}, new)
    return config


@pytest.mark.thorough
def test_a_step_sends_what_was_added_to_the_conversation(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    conversation(saver, range(100))
    last = double.asked("put")[-1]
    assert [blob.encoding for blob in last.put.blobs] == [store_pb2.ENCODING_SPLICE, store_pb2.ENCODING_RAW]
    assert last.ByteSize() < 1500
    # 100 steps of 1.2 KB a message, compressed to about 0.6 KB.
    assert sum(request.ByteSize() for request in double.asked("put")) < 250_000
    assert len(at(saver.get_tuple(THREAD))["messages"]) == 100


def test_a_new_process_goes_on_from_what_it_has_read(
    saver: AgentVisorCheckpointer, transport: Transport, double: StoreDouble
) -> None:
    conversation(saver, range(30))
    new_process = AgentVisorCheckpointer(transport=transport)
    found = new_process.get_tuple(THREAD)
    assert found is not None
    assert at(found)["messages"] == [message(number) for number in range(30)]
    double.requests.clear()
    conversation(new_process, range(30, 31), found.config)
    (request,) = double.requests
    assert request.ByteSize() < 1500
    assert len(at(saver.get_tuple(THREAD))["messages"]) == 31


@pytest.mark.thorough
def test_chains_stay_shallow_however_many_processes_a_thread_has_seen(
    transport: Transport, double: StoreDouble
) -> None:
    config: Any = THREAD
    for run in range(40):
        process = AgentVisorCheckpointer(transport=transport)
        found = process.get_tuple(THREAD)
        config = found.config if found else THREAD
        conversation(process, range(run * 4, run * 4 + 4), config)
    blobs = [blob for put in double.puts() for blob in put.blobs if blob.size > 1000]
    assert max(blob.depth for blob in blobs) <= 48
    whole = [blob for blob in blobs if blob.encoding == store_pb2.ENCODING_ZSTD and blob.size > 100_000]
    assert whole == []  # once it had grown, it was never stored whole again


def test_what_the_thread_has_already_is_not_sent_whichever_channel_has_it(
    saver: AgentVisorCheckpointer, double: StoreDouble
) -> None:
    value = "x" * 5000
    first = put(saver, THREAD, {"a": value}, {"a": "1"})
    child: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "child:1"}}
    put(saver, child, {"b": value}, {"b": "1"})
    put(saver, first, {"a": "y", "c": value}, {"a": "2", "c": "1"})
    assert [[blob.size for blob in one.blobs] for one in double.puts()] == [[5003], [], [2]]
    other: Any = {"configurable": {"thread_id": "another", "checkpoint_ns": ""}}
    put(saver, other, {"a": value}, {"a": "1"})
    assert [blob.size for blob in double.puts()[-1].blobs] == [5003]


def test_a_put_that_failed_is_no_base_for_the_next(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    config = conversation(saver, range(10))
    for error in (Unavailable("lost"), Conflict("busy")):
        double.refuse_next.append(error)
        with pytest.raises(type(error)):
            conversation(saver, range(10, 11), config)
    config = conversation(saver, range(11, 13), config)
    assert [item.id for item in at(saver.get_tuple(config))["messages"]] == [str(number) for number in range(13)]


def lose_everything(double: StoreDouble) -> None:
    double.threads.clear()


def lose_values(double: StoreDouble) -> None:
    double.threads["t"].store.blobs.clear()
    double.threads["t"].values.clear()


@pytest.mark.parametrize("lose", [lose_everything, lose_values])
def test_a_thread_that_lost_what_it_had_is_given_it_again(
    saver: AgentVisorCheckpointer, double: StoreDouble, lose: Callable[[StoreDouble], None]
) -> None:
    config = conversation(saver, range(10))
    lose(double)
    config = conversation(saver, range(10, 12), config)
    values = at(saver.get_tuple(config))
    assert (len(values["messages"]), values["still"][0]) == (12, "still")


def test_a_thread_that_does_not_take_it_even_whole_is_an_error(
    saver: AgentVisorCheckpointer, double: StoreDouble
) -> None:
    config = conversation(saver, range(2))
    double.refuse_next += [Corrupt("no"), Corrupt("still no")]
    with pytest.raises(Corrupt, match="still no"):
        conversation(saver, range(2, 3), config)
    conversation(saver, range(2, 4), config)


def test_a_deleted_thread_begins_anew(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    conversation(saver, range(5))
    saver.delete_thread("t")
    assert saver.get_tuple(THREAD) is None
    double.requests.clear()
    conversation(saver, range(3))
    assert len(double.asked("put")) == 3  # none of them in vain


def test_values_that_one_message_cannot_carry_go_in_parts_ahead_of_it(double: StoreDouble) -> None:
    with over_socketpair(double) as channel:
        saver = AgentVisorCheckpointer(transport=channel)
        noise = random.Random(1)
        values = {f"c{number}": noise.randbytes(1_400_000) for number in range(7)}
        put(saver, THREAD, values, dict.fromkeys(values, "1"))
        kinds = [request.WhichOneof("kind") for request in double.requests]
        assert kinds == ["put_part"] * 21 + ["put"]
        assert max(request.ByteSize() for request in double.requests) < 600_000
        assert at(AgentVisorCheckpointer(transport=channel).get_tuple(THREAD)) == values


def test_values_in_many_pages_are_read_whatever_the_page_cuts(way: str) -> None:
    double = StoreDouble(blob_page=1)
    with way_to(double, way) as transport:
        conversation(AgentVisorCheckpointer(transport=transport), range(20))
        found = AgentVisorCheckpointer(transport=transport).get_tuple(THREAD)
        assert len(at(found)["messages"]) == 20
        listed = list(AgentVisorCheckpointer(transport=transport).list(THREAD))
        assert [len(at(one)["messages"]) for one in listed] == list(range(1, 21))[::-1]


def test_a_value_that_the_host_does_not_have_is_an_error_and_not_a_loop(
    saver: AgentVisorCheckpointer, double: StoreDouble
) -> None:
    stored = put(saver, THREAD, {"a": "x" * 500}, {"a": "1"})
    double.threads["t"].store.blobs.clear()
    with way_to(double, "socketpair") as transport, pytest.raises(Corrupt, match="has no value"):
        AgentVisorCheckpointer(transport=transport).get_tuple(stored)
