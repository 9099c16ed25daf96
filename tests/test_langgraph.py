"""The checkpointer keeps LangGraph's contract over both ways to a host."""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_conformance import assert_conforms, assert_delta_history
from tests.langgraph_saver import CHECKPOINT, THREAD, at, checkpoint, double, put, saver, transport, way

from agentvisor.client.transport import Transport
from agentvisor.core.errors import InvalidInput
from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["double", "saver", "transport", "way"]


async def test_langgraphs_own_conformance_suite_passes(way: str) -> None:
    async def fresh_saver() -> AsyncGenerator[AgentVisorCheckpointer]:
        with way_to(StoreDouble(), way) as transport:
            yield AgentVisorCheckpointer(transport=transport)

    await assert_conforms(fresh_saver)
    await assert_delta_history(fresh_saver)


# --- what a checkpoint holds ---------------------------------------------------------------------------------------


def test_channels_that_did_not_change_keep_their_values_and_removed_ones_do_not_come_back(
    saver: AgentVisorCheckpointer,
) -> None:
    first = saver.put(
        THREAD, checkpoint({"a": 1, "b": 2, "c": 3}, {"a": "1", "b": "1", "c": "1"}), {}, {"a": "1", "b": "1", "c": "1"}
    )
    second = saver.put(first, checkpoint({"a": 9, "b": 2}, {"a": "2", "b": "1"}), {}, {"a": "2"})
    assert at(saver.get_tuple(second)) == {"a": 9, "b": 2}
    assert at(saver.get_tuple(first)) == {"a": 1, "b": 2, "c": 3}
    third = saver.put(second, checkpoint({"a": 9}, {"a": "2", "b": "2"}), {}, {"b": "2"})
    assert at(saver.get_tuple(third)) == {"a": 9}  # b is empty at its new version


def test_a_saver_that_knows_nothing_takes_values_that_are_not_at_hand_from_the_parent(
    saver: AgentVisorCheckpointer, transport: Transport
) -> None:
    first = put(saver, THREAD, {"a": 1, "b": [2] * 500}, {"a": "1", "b": "1"})
    other = AgentVisorCheckpointer(transport=transport)
    second = other.put(first, checkpoint({"a": 9}, {"a": "2", "b": "1"}), {}, {"a": "2"})
    assert at(saver.get_tuple(second)) == {"a": 9, "b": [2] * 500}


def test_a_fork_takes_the_values_of_the_branch_that_it_is_made_from(saver: AgentVisorCheckpointer) -> None:
    # update_state(..., as_node="__copy__") puts a copy of a checkpoint under that one's parent, with no new versions.
    root = put(saver, THREAD, {"a": "old"}, {"a": "1"})
    put(saver, root, {"a": "new"}, {"a": "2"})
    for values in ({"a": "new"}, {}):
        copied = saver.put(root, checkpoint(values, {"a": "2"}), {}, {})
        assert at(saver.get_tuple(copied)) == {"a": "new"}


def test_metadata_keeps_the_types_of_its_numbers_and_what_is_not_json_is_named(saver: AgentVisorCheckpointer) -> None:
    metadata: Any = {"step": 3, "score": 2.0, "ratio": 0.5, "parents": {"": "x"}, "counters": {"c": (1, 2)}}
    stored = saver.put(THREAD, checkpoint({}, {}), metadata, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {**metadata, "counters": {"c": [1, 2]}}
    assert {type(found.metadata["step"]), type(found.metadata["score"])} == {int, float}  # type: ignore[typeddict-item]
    for bad in (lambda: None, 2**60, float("nan"), b"x"):
        with pytest.raises(InvalidInput, match=r"metadata\['handler'\]"):
            saver.put(THREAD, checkpoint({}, {}), {"handler": bad}, {})  # type: ignore[typeddict-unknown-key]


# --- pending writes ------------------------------------------------------------------------------------------------


def test_pregel_passes_the_task_path_by_its_name(saver: AgentVisorCheckpointer) -> None:
    for method in (saver.put_writes, saver.aput_writes):
        assert inspect.signature(method).parameters["task_path"].default == ""


def test_no_writes_send_nothing(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    saver.put_writes(CHECKPOINT, [], "task")
    assert double.requests == []


# --- lists ---------------------------------------------------------------------------------------------------------


def put_many(saver: AgentVisorCheckpointer, thread: str, namespaces: list[str], count: int) -> list[str]:
    ids: list[str] = []
    for number in range(count):
        for namespace in namespaces:
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
            one = checkpoint({"n": [number] * 200}, {"n": str(number)})
            saver.put(config, one, {"step": number, "even": number % 2 == 0}, {"n": str(number)})
            ids.append(one["id"])
    return ids


def test_a_list_comes_in_pages_newest_first_with_values(saver: AgentVisorCheckpointer) -> None:
    ids = put_many(saver, "t", [""], 40)
    found = list(saver.list(THREAD))
    assert [one.checkpoint["id"] for one in found] == ids[::-1]
    assert [at(one)["n"][0] for one in found] == list(range(40))[::-1]
    assert [one.checkpoint["id"] for one in saver.list(THREAD, limit=20)] == ids[:-21:-1]


def test_a_limit_of_nothing_asks_for_nothing(saver: AgentVisorCheckpointer, double: StoreDouble) -> None:
    assert list(saver.list(THREAD, limit=0)) == []
    assert double.requests == []


def test_a_filter_is_equality_of_metadata(saver: AgentVisorCheckpointer) -> None:
    put_many(saver, "t", [""], 5)
    assert [one.metadata.get("step") for one in saver.list(THREAD, filter={"even": True})] == [4, 2, 0]
    assert [one.metadata.get("step") for one in saver.list(THREAD, filter={"even": True, "step": 2})] == [2]
    assert list(saver.list(THREAD, filter={"missing": None})) == []
    with pytest.raises(InvalidInput, match=r"filter\['x'\]"):
        list(saver.list(THREAD, filter={"x": object()}))


def test_without_a_config_every_thread_is_listed(saver: AgentVisorCheckpointer) -> None:
    for thread in ("a", "b", "c"):
        put_many(saver, thread, ["", "ns"], 4)
    listed = [one.config["configurable"]["thread_id"] for one in saver.list(None)]
    assert sorted(listed) == ["a"] * 8 + ["b"] * 8 + ["c"] * 8


async def test_a_list_may_be_awaited(saver: AgentVisorCheckpointer) -> None:
    ids = await asyncio.to_thread(put_many, saver, "t", [""], 7)
    assert [one.checkpoint["id"] async for one in saver.alist(THREAD)] == ids[::-1]


def test_nul_and_every_other_character_pass(saver: AgentVisorCheckpointer) -> None:
    text = "a\x00b\U0001f600\ud7ff\x7f"
    stored = saver.put(
        THREAD,
        checkpoint({text: [text], "m": AIMessage(text)}, {text: "1", "m": "1"}),
        {"k": text},
        {text: "1", "m": "1"},
    )
    saver.put_writes(stored, [(text, text)], "task", text)
    found = saver.get_tuple(stored)
    assert found is not None
    assert at(found) == {text: [text], "m": AIMessage(text)}
    assert found.pending_writes == [("task", text, text)]
    assert found.metadata == {"k": text.replace("\x00", "")}  # LangGraph's own rule for metadata
