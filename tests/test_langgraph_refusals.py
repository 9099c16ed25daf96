"""What the checkpointer refuses, it refuses before anything is sent, and says what to do."""

import random
from typing import Any

import pytest
from tests.client.hosts import answering_info, over_socketpair
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import CHECKPOINT, THREAD, at, checkpoint, double, put, saver, transport, way

from agentvisor._langgraph import delta_names
from agentvisor.core.errors import InvalidInput, PermissionRefused, Unavailable, ValueTooLarge
from agentvisor.langgraph import AgentVisorCheckpointer
from agentvisor.protocol.v1.guest_pb2 import AgentTask

__all__ = ["double", "saver", "transport", "way"]


def test_a_thread_id_that_is_none_is_refused_with_what_to_do(saver: AgentVisorCheckpointer) -> None:
    empty: Any = {"configurable": {}}
    with pytest.raises(InvalidInput, match="thread_id"):
        saver.get_tuple(empty)
    with pytest.raises(InvalidInput, match="thread_id"):
        saver.put({}, checkpoint({}, {}), {}, {})
    for odd in ("a\x00b", "a b", "x" * 256, "ü"):
        with pytest.raises(InvalidInput, match="not allowed"):
            saver.get_tuple({"configurable": {"thread_id": odd}})


def test_in_a_guest_the_own_thread_needs_no_name_and_no_other_is_allowed(
    saver: AgentVisorCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTVISOR_THREAD_ID", "own")
    empty: Any = {"configurable": {}}
    stored = saver.put({}, checkpoint({"a": 1}, {"a": "1"}), {}, {"a": "1"})
    assert stored["configurable"]["thread_id"] == "own"
    assert at(saver.get_tuple(empty)) == {"a": 1}
    assert [at(one) for one in saver.list(None)] == [{"a": 1}]
    for call in (
        lambda: put(saver, THREAD, {}, {}),
        lambda: saver.put_writes(CHECKPOINT, [("a", 1)], "task"),
        lambda: saver.get_tuple(THREAD),
        lambda: list(saver.list(THREAD)),
        lambda: saver.delete_thread("t"),
        lambda: saver.prune(["own", "t"]),
        lambda: saver.copy_thread("own", "t"),
        lambda: saver.copy_thread("t", "own"),
        lambda: saver.get_delta_channel_history(config=THREAD, channels=["a"]),
    ):
        with pytest.raises(PermissionRefused, match="thread own"):
            call()


def test_in_a_guest_runs_are_deleted_from_the_own_thread_alone(
    saver: AgentVisorCheckpointer, double: StoreDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTVISOR_THREAD_ID", "own")
    saver.delete_for_runs(["r"])
    saver.prune(["own"])
    assert {request.thread_id for request in double.requests} == {"own"}


def test_what_there_is_nothing_to_do_for_sends_nothing(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    saver.delete_for_runs([])
    saver.prune([])
    assert saver.get_delta_channel_history(config=THREAD, channels=[]) == {}
    assert double.requests == []


def test_a_strategy_that_does_not_exist_is_refused(saver: AgentVisorCheckpointer) -> None:
    put(saver, THREAD, {"a": 1}, {"a": "1"})
    with pytest.raises(InvalidInput, match="'keep_latest' or 'delete'"):
        saver.prune(["t"], strategy="delete_all")
    assert at(saver.get_tuple(THREAD)) == {"a": 1}


def test_where_no_host_answers_the_first_call_says_what_to_start() -> None:
    with answering_info({}) as endpoint:
        pass
    saver = AgentVisorCheckpointer(endpoint=endpoint)  # no error yet: graphs are built before hosts are started
    with pytest.raises(Unavailable, match="agentvisor dev"):
        saver.get_tuple(THREAD)


def test_a_value_that_cannot_be_serialised_is_named_by_its_channel(
    saver: AgentVisorCheckpointer, double: StoreDouble
) -> None:
    bad = {"nested": [lambda: None]}
    with pytest.raises(InvalidInput, match=r"channel 'broken' of thread t.*cannot be serialised"):
        saver.put(
            THREAD,
            checkpoint({"fine": 1, "broken": bad}, {"fine": "1", "broken": "1"}),
            {},
            {"fine": "1", "broken": "1"},
        )
    with pytest.raises(InvalidInput, match="channel 'broken'"):
        saver.put_writes(
            {"configurable": {"thread_id": "t", "checkpoint_id": "c"}}, [("fine", 1), ("broken", bad)], "task"
        )
    assert double.requests == []


def test_values_over_the_limits_of_the_task_are_refused_before_anything_is_sent(
    double: StoreDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = random.Random(1).randbytes(30_000)
    task = AgentTask(max_value_bytes=100_000, max_inline_value_bytes=20_000)
    with over_socketpair(double, task) as channel:
        saver = AgentVisorCheckpointer(transport=channel)
        put(saver, THREAD, {"a": "x" * 90_000}, {"a": "1"})
        double.requests.clear()
        for value in ("x" * 110_000, noise):
            with pytest.raises(
                ValueTooLarge, match=r"channel 'big' of thread t has \d+ bytes, the limit is \d+"
            ) as caught:
                put(saver, THREAD, {"big": value}, {"big": "1"})
            assert caught.value.details["channel"] == "big"
            for control in ("__interrupt__", "__resume__"):
                with pytest.raises(ValueTooLarge, match=f"channel '{control}'"):
                    saver.put_writes(CHECKPOINT, [("fine", 1), (control, value)], "task")
        assert double.requests == []
        monkeypatch.setattr(delta_names, "_names", {"items"})
        with pytest.raises(ValueTooLarge, match="channel 'big'"):  # and with it, of what the task did, the rest
            saver.put_writes(CHECKPOINT, [("big", value), ("items", 1)], "task")
        assert double.requests == []


def test_regular_writes_over_the_limits_are_left_out_and_no_error(double: StoreDouble) -> None:
    noise = random.Random(1).randbytes(30_000)
    task = AgentTask(max_value_bytes=100_000, max_inline_value_bytes=20_000)
    with over_socketpair(double, task) as channel:
        saver = AgentVisorCheckpointer(transport=channel)
        saver.put_writes(CHECKPOINT, [("fine", 1), ("big", noise), ("__resume__", "yes")], "task")
        (request,) = double.asked("put_writes")
        assert [one.channel for one in request.put_writes.writes] == ["__resume__"]
        assert request.put_writes.left_out > 30_000


def test_metadata_that_will_be_refused_leaves_no_thread_behind(
    saver: AgentVisorCheckpointer, double: StoreDouble
) -> None:
    config: Any = {**CHECKPOINT, "metadata": {"nan": float("nan")}}
    with pytest.raises(InvalidInput, match="nan"):
        saver.put_writes(config, [("a", 1)], "task")  # LangGraph sends a first step's writes before its checkpoint
    assert not double.threads


@pytest.mark.parametrize("metadata", [[1], "text", 3])
def test_metadata_that_is_no_object_is_refused_by_name(
    saver: AgentVisorCheckpointer, double: StoreDouble, metadata: Any
) -> None:
    with pytest.raises(InvalidInput, match="metadata must be an object, not"):
        saver.put(THREAD, checkpoint({"a": 1}, {"a": "1"}), metadata, {"a": "1"})
    assert not double.requests


def test_an_id_that_is_no_text_is_refused_by_name(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    odd: Any = {**checkpoint({"a": 1}, {"a": "1"}), "id": 5}
    with pytest.raises(InvalidInput, match=r"checkpoint\['id'\] must be text, not int"):
        saver.put(THREAD, odd, {}, {"a": "1"})
    assert not double.requests
