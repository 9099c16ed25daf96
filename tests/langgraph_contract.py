"""LangGraph's checkpointer contract, for any saver: what its own conformance suite does not catch (langgraph.md, 2.2).

Each law takes a saver and a thread of its own. Both may be shared by no other law.
"""

import asyncio
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Interrupt, Send
from tests.langgraph_saver import checkpoint

Saver = Any
"""A `BaseCheckpointSaver`, called by its synchronous names."""


_count = itertools.count(1)


class Twin:
    """A saver's asynchronous methods under their synchronous names: every law holds for both."""

    def __init__(self, saver: BaseCheckpointSaver[str]) -> None:
        self._saver = saver

    def __getattr__(self, name: str) -> Callable[..., Any]:
        twin = getattr(self._saver, f"a{name}")
        return lambda *args, **named: asyncio.run(twin(*args, **named))

    def list(self, *args: Any, **named: Any) -> list[Any]:
        async def listed() -> list[Any]:
            return [one async for one in self._saver.alist(*args, **named)]

        return asyncio.run(listed())


def at(thread: str, namespace: str = "", checkpoint_id: str = "") -> Any:
    named = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": named | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def put(saver: Saver, parent: Any, values: dict[str, Any] | None = None, metadata: Any = None, **more: Any) -> Any:
    """Store a checkpoint with new values; its config."""
    values = values or {}
    versions = dict.fromkeys(values, f"{next(_count):08}")
    return saver.put(parent, checkpoint(values, versions, **more), metadata or {}, versions)


def id_of(config: Any) -> str:
    assert config is not None, "there is no such checkpoint"
    return config["configurable"]["checkpoint_id"]


def writes(saver: Saver, config: Any) -> list[tuple[str, str, Any]]:
    found = saver.get_tuple(config)
    assert found is not None, "the checkpoint is not there"
    return list(found.pending_writes or [])


def ids(listed: Iterator[Any]) -> list[str]:
    return [one.checkpoint["id"] for one in listed]


# --- pending writes ------------------------------------------------------------------------------------------------


def of_regular_writes_the_first_counts(saver: Saver, thread: str) -> None:
    stored = put(saver, at(thread))
    saver.put_writes(stored, [("x", "first"), ("y", "first")], "task")
    saver.put_writes(stored, [("x", "again"), ("y", "again"), ("z", "more")], "task")
    assert writes(saver, stored) == [("task", "x", "first"), ("task", "y", "first"), ("task", "z", "more")]


def of_control_writes_the_last_counts(saver: Saver, thread: str) -> None:
    stored = put(saver, at(thread))
    for turn in ("first", "last"):
        saver.put_writes(stored, [("__interrupt__", turn), ("__resume__", turn), ("__error__", turn)], "task")
    last = {("task", channel, "last") for channel in ("__interrupt__", "__resume__", "__error__")}
    assert set(writes(saver, stored)) == last


def control_writes_have_slots_of_their_own(saver: Saver, thread: str) -> None:
    stored = put(saver, at(thread))
    saver.put_writes(stored, [("x", 1)], "task")
    saver.put_writes(stored, [("__interrupt__", "?")], "task")
    saver.put_writes(stored, [("__resume__", "!")], "task")
    assert set(writes(saver, stored)) == {("task", "x", 1), ("task", "__interrupt__", "?"), ("task", "__resume__", "!")}


def writes_come_in_the_order_of_path_task_and_index(saver: Saver, thread: str) -> None:
    stored = put(saver, at(thread))
    saver.put_writes(stored, [("x", 4), ("y", 5)], "a", "path-2")
    saver.put_writes(stored, [("x", 2)], "c", "path-1")
    saver.put_writes(stored, [("x", 1)], "b", "path-1")
    saver.put_writes(stored, [("x", 0)], "d")
    assert [value for _, _, value in writes(saver, stored)] == [0, 1, 2, 4, 5]
    (listed,) = saver.list(at(thread, ""))
    assert [value for _, _, value in listed.pending_writes] == [0, 1, 2, 4, 5]


def writes_may_come_before_their_checkpoint(saver: Saver, thread: str) -> None:
    one = checkpoint({}, {})
    saver.put_writes(at(thread, "", one["id"]), [("x", "early")], "task")
    stored = saver.put(at(thread), one, {}, {})
    assert writes(saver, stored) == [("task", "x", "early")]


def late_writes_are_filed_under_the_checkpoint_that_they_name(saver: Saver, thread: str) -> None:
    first = put(saver, at(thread))
    second = put(saver, first)
    third = put(saver, second)
    saver.put_writes(first, [("x", "late")], "task")
    assert writes(saver, first) == [("task", "x", "late")]
    assert writes(saver, second) == writes(saver, third) == []


def namespaces_have_writes_and_heads_of_their_own(saver: Saver, thread: str) -> None:
    one = checkpoint({"n": "root"}, {"n": "1"})
    saver.put(at(thread), one, {}, {"n": "1"})
    saver.put(at(thread, "child:1"), {**one, "channel_values": {"n": "child"}}, {}, {"n": "1"})
    saver.put_writes(at(thread, "child:1", one["id"]), [("x", "child's")], "task")
    newer = put(saver, at(thread, "other:2"), {"n": "other"})
    assert writes(saver, at(thread)) == []
    assert writes(saver, at(thread, "child:1")) == [("task", "x", "child's")]
    assert saver.get_tuple(at(thread)).checkpoint["channel_values"] == {"n": "root"}
    assert saver.get_tuple(at(thread, "child:1")).checkpoint["channel_values"] == {"n": "child"}
    assert saver.get_tuple(at(thread, "", id_of(newer))) is None


# --- checkpoints ---------------------------------------------------------------------------------------------------


def the_latest_is_the_greatest_id_in_whatever_order_they_come(saver: Saver, thread: str) -> None:
    made = [checkpoint({"n": number}, {"n": str(number)}) for number in range(3)]
    for number in (1, 2, 0):
        saver.put(at(thread), made[number], {}, {"n": str(number)})
    assert saver.get_tuple(at(thread)).checkpoint["channel_values"] == {"n": 2}
    assert ids(saver.list(at(thread, ""))) == [one["id"] for one in reversed(made)]


def putting_a_checkpoint_again_replaces_it(saver: Saver, thread: str) -> None:
    one = checkpoint({"n": 1}, {"n": "1"})
    for step in (1, 2):
        stored = saver.put(at(thread), one, {"step": step}, {"n": "1"})
    saver.put_writes(stored, [("x", 1)], "task")
    saver.put(at(thread), one, {"step": 3}, {"n": "1"})
    (found,) = saver.list(at(thread))
    assert (found.metadata, found.checkpoint["channel_values"]) == ({"step": 3}, {"n": 1})
    assert found.pending_writes == [("task", "x", 1)]


def a_channel_that_has_gone_does_not_come_back(saver: Saver, thread: str) -> None:
    first = saver.put(at(thread), checkpoint({"a": 1, "b": 2}, {"a": "1", "b": "1"}), {}, {"a": "1", "b": "1"})
    second = saver.put(first, checkpoint({"a": 1}, {"a": "1"}), {}, {})
    third = saver.put(second, checkpoint({}, {"a": "2"}), {}, {"a": "2"})
    assert [saver.get_tuple(one).checkpoint["channel_values"] for one in (first, second, third)] == [
        {"a": 1, "b": 2}, {"a": 1}, {},
    ]  # fmt: skip


def parents_are_those_that_were_named(saver: Saver, thread: str) -> None:
    root = put(saver, at(thread))
    left, right = put(saver, root), put(saver, root)
    assert saver.get_tuple(root).parent_config is None
    assert {id_of(saver.get_tuple(one).parent_config) for one in (left, right)} == {id_of(root)}


def values_come_back_as_the_types_that_they_were(saver: Saver, thread: str) -> None:
    values: dict[str, Any] = {
        "message": AIMessage("hi", id="1", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "c"}]),
        "set": {1, 2}, "bytes": b"\x00\xff", "none": None, "when": datetime.now(UTC),
        "uuid": UUID(int=7), "big": 2**62, "text": "\x00\U0001f600", "send": [Send("node", {"x": 1})],
        "deep": {"a": [{"b": [AIMessage("deep")]}]},
    }  # fmt: skip
    stored = put(saver, at(thread), values)
    saver.put_writes(stored, [("x", values), ("__interrupt__", (Interrupt("?", id="i"),))], "task")
    found = saver.get_tuple(stored)
    assert found.checkpoint["channel_values"] == values
    assert {name: type(one) for name, one in found.checkpoint["channel_values"].items()} == {
        name: type(one) for name, one in values.items()
    }
    asked, written = sorted(found.pending_writes, key=operator.itemgetter(1))
    assert (list(asked[2]), written[2]) == ([Interrupt("?", id="i")], values)


def a_missing_checkpoint_is_none(saver: Saver, thread: str) -> None:
    assert saver.get_tuple(at(thread)) is None
    put(saver, at(thread))
    assert saver.get_tuple(at(thread, "", "1f000000-0000-6000-8000-000000000000")) is None
    assert saver.get_tuple(at(thread, "child:1")) is None


# --- lists ---------------------------------------------------------------------------------------------------------


def a_limit_of_nothing_lists_nothing(saver: Saver, thread: str) -> None:
    put(saver, at(thread))
    assert list(saver.list(at(thread), limit=0)) == []
    assert len(list(saver.list(at(thread), limit=1))) == 1


def before_compares_ids_across_namespaces_and_is_strict(saver: Saver, thread: str) -> None:
    made: list[str] = []
    for _ in range(3):
        made += [id_of(put(saver, at(thread))), id_of(put(saver, at(thread, "child:1")))]
    # The root's second is between the child's first and second.
    assert ids(saver.list(at(thread, "child:1"), before=at(thread, "", made[2]))) == [made[1]]
    assert ids(saver.list(at(thread, "child:1"), before=at(thread, "", made[4]), limit=1)) == [made[3]]
    assert ids(saver.list(at(thread, ""), before=at(thread, "", made[2]))) == [made[0]]
    anywhere: Any = {"configurable": {"thread_id": thread}}
    assert ids(saver.list(anywhere, before=at(thread, "", made[3]))) == made[2::-1]
    assert ids(saver.list(anywhere, before=at(thread, "", "~"))) == made[::-1]


def the_root_is_a_namespace_and_none_is_all(saver: Saver, thread: str) -> None:
    root, child = id_of(put(saver, at(thread))), id_of(put(saver, at(thread, "child:1")))
    assert ids(saver.list(at(thread, ""))) == [root]
    assert ids(saver.list(at(thread, "child:1"))) == [child]
    assert ids(saver.list({"configurable": {"thread_id": thread}})) == [child, root]


def a_filter_wants_all_of_its_keys_whatever_they_are(saver: Saver, thread: str) -> None:
    made = [
        id_of(
            put(saver, at(thread), metadata={"source": "loop", "step": n, "even": n % 2 == 0, "tag": {"of": [n % 3]}})
        )
        for n in range(6)
    ]

    def found(**wanted: Any) -> list[int]:
        return [made.index(one) for one in ids(saver.list(at(thread), filter=wanted))]

    assert found(even=True) == [4, 2, 0]
    assert found(even=True, tag={"of": [1]}) == [4]
    assert found(source="loop", even=False, step=3) == [3]
    assert found(source="input") == found(step="3") == found(missing=1) == []
    assert [made.index(one) for one in ids(saver.list(at(thread), filter={"even": True}, limit=2))] == [4, 2]


# --- the rest ------------------------------------------------------------------------------------------------------


def what_runs_have_made_goes_from_every_namespace_with_its_writes(saver: Saver, thread: str) -> None:
    kept = put(saver, at(thread), metadata={"run_id": f"{thread}-kept"})
    gone = [put(saver, at(thread, namespace), metadata={"run_id": f"{thread}-gone"}) for namespace in ("", "child:1")]
    for one in (kept, *gone):
        saver.put_writes(one, [("x", 1)], "task")
    saver.delete_for_runs([f"{thread}-gone"])
    assert [saver.get_tuple(one) for one in gone] == [None, None]
    assert writes(saver, kept) == [("task", "x", 1)]
    assert id_of(saver.get_tuple(at(thread)).config) == id_of(kept)


def pruning_keeps_the_latest_of_every_namespace(saver: Saver, thread: str) -> None:
    made = {ns: [put(saver, at(thread, ns), {"n": [n] * 100}) for n in range(3)] for ns in ("", "child:1", "other:2")}
    saver.put_writes(made["child:1"][2], [("x", 1)], "task")
    saver.prune([thread])
    assert set(ids(saver.list({"configurable": {"thread_id": thread}}))) == {id_of(one[2]) for one in made.values()}
    assert saver.get_tuple(made["other:2"][2]).checkpoint["channel_values"] == {"n": [2] * 100}
    assert writes(saver, made["child:1"][2]) == [("task", "x", 1)]


def a_delta_channel_outlives_the_checkpoints_that_it_is_made_of(saver: Saver, thread: str) -> None:
    one: Any = at(thread)
    for number in range(5):
        metadata = {"counters_since_delta_snapshot": {"items": [number, number]}} if number else {}
        version = f"{number + 1}"
        one = saver.put(one, checkpoint({}, {"items": version}), metadata, {"items": version})
        saver.put_writes(one, [("items", number), ("else", number)], f"task-{number}")
    saver.prune([thread])
    history = saver.get_delta_channel_history(config=one, channels=["items"])
    assert [value for _, _, value in history["items"]["writes"]] == [0, 1, 2, 3]
    assert len(ids(saver.list(at(thread)))) == 1


def a_copy_is_whole_and_independent(saver: Saver, thread: str) -> None:
    copy = f"{thread}-copy"
    first = put(saver, at(thread), {"n": [1] * 100})
    second = put(saver, first, {"n": [1] * 99 + [2]})
    child = put(saver, at(thread, "child:1"), {"n": "child"})
    for config in (first, second, child):
        saver.put_writes(config, [("x", id_of(config)), ("__resume__", "yes")], "task", "path")
    saver.copy_thread(thread, copy)
    saver.delete_thread(thread)
    for config in (first, second, child):
        copied = at(copy, config["configurable"]["checkpoint_ns"], id_of(config))
        assert set(writes(saver, copied)) == {("task", "x", id_of(config)), ("task", "__resume__", "yes")}
    assert id_of(saver.get_tuple(at(copy, "", id_of(second))).parent_config) == id_of(first)
    assert saver.get_tuple(at(copy)).checkpoint["channel_values"] == {"n": [1] * 99 + [2]}
    assert saver.get_tuple(at(copy, "", id_of(first))).checkpoint["channel_values"] == {"n": [1] * 100}
    assert saver.get_tuple(at(copy, "child:1")).checkpoint["channel_values"] == {"n": "child"}


def six_threads_at_once_lose_nothing(saver: Saver, thread: str) -> None:
    def work(number: int) -> list[str]:
        config, made = at(thread, f"node:{number}"), list[str]()
        for step in range(8):
            config = put(saver, config, {"n": [number, step], "shared": ["the same"] * 200})
            saver.put_writes(config, [("x", [number, step])], f"task-{step}")
            made.append(id_of(config))
        return made

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(work, range(6)))
    for number, theirs in enumerate(made):
        found = list(saver.list(at(thread, f"node:{number}")))
        assert [one.checkpoint["id"] for one in found] == theirs[::-1]
        assert [one.checkpoint["channel_values"]["n"] for one in found] == [[number, step] for step in range(7, -1, -1)]
        assert [one.pending_writes[0][2] for one in found] == [[number, step] for step in range(7, -1, -1)]


Law = Callable[[Saver, str], None]

LAWS: Sequence[Law] = (
    of_regular_writes_the_first_counts,
    of_control_writes_the_last_counts,
    control_writes_have_slots_of_their_own,
    writes_come_in_the_order_of_path_task_and_index,
    writes_may_come_before_their_checkpoint,
    late_writes_are_filed_under_the_checkpoint_that_they_name,
    namespaces_have_writes_and_heads_of_their_own,
    the_latest_is_the_greatest_id_in_whatever_order_they_come,
    putting_a_checkpoint_again_replaces_it,
    a_channel_that_has_gone_does_not_come_back,
    parents_are_those_that_were_named,
    values_come_back_as_the_types_that_they_were,
    a_missing_checkpoint_is_none,
    a_limit_of_nothing_lists_nothing,
    before_compares_ids_across_namespaces_and_is_strict,
    the_root_is_a_namespace_and_none_is_all,
    a_filter_wants_all_of_its_keys_whatever_they_are,
    what_runs_have_made_goes_from_every_namespace_with_its_writes,
    pruning_keeps_the_latest_of_every_namespace,
    a_delta_channel_outlives_the_checkpoints_that_it_is_made_of,
    a_copy_is_whole_and_independent,
    six_threads_at_once_lose_nothing,
)
