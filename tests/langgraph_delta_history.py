"""The delta-channel history contract, for any saver: tests in the shape of LangGraph's conformance suite at git HEAD.

The suite on PyPI (0.0.2) does not know the capability yet. Each test takes a saver and one thread id.
"""

from typing import Any
from uuid import uuid4

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot

FIRST_TASK, LAST_TASK = "00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"

Step = tuple[dict[str, Any], list[tuple[str, Any]]]
"""Values that a checkpoint holds, and what is written under it afterwards."""


async def chain(saver: BaseCheckpointSaver[str], thread: str, *steps: Step, parent: Any = None) -> list[Any]:
    """Checkpoints one after another; as in pregel, a channel has a new version where it got a value or was written."""
    configs: list[Any] = []
    versions: dict[str, str] = {}
    written: set[str] = set()
    for number, (values, writes) in enumerate(steps):
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        if parent is not None:
            config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
        new = {channel: f"{number + 1:08}.{uuid4().hex}" for channel in {*values, *written}}
        versions |= new
        one: Any = {
            "v": 4, "id": str(uuid6(clock_seq=-2)), "ts": "", "channel_values": dict(values),
            "channel_versions": dict(versions), "versions_seen": {}, "updated_channels": None,
        }  # fmt: skip
        parent = await saver.aput(config, one, {"source": "loop", "step": number}, new)
        configs.append(parent)
        written = {channel for channel, _ in writes}
        if writes:
            await saver.aput_writes(parent, writes, str(uuid4()))
    return configs


async def history(saver: BaseCheckpointSaver[str], config: Any, *channels: str) -> dict[str, tuple[Any, list[Any]]]:
    """(seed, values written) of each channel; a seed that is not there is `...`."""
    found = await saver.aget_delta_channel_history(config=config, channels=channels)
    shown: dict[str, tuple[Any, list[Any]]] = {}
    for channel, one in found.items():
        seed = one.get("seed", ...)
        shown[channel] = (seed.value if isinstance(seed, _DeltaSnapshot) else seed, [w[2] for w in one["writes"]])
        assert all(name == channel for _, name, _ in one["writes"])
    return shown


def wrote(*values: Any, channel: str = "ch") -> Step:
    return {}, [(channel, value) for value in values]


def snapshot(value: Any, *writes: Any, channel: str = "ch") -> Step:
    return {channel: _DeltaSnapshot(value)}, [(channel, one) for one in writes]


async def test_writes_come_oldest_first_from_the_nearest_value_on(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, snapshot(["s0"], 0), wrote(1), snapshot(["s2"], 2), wrote(3, 4), wrote(5))
    assert await history(saver, configs[4], "ch") == {"ch": (["s2"], [2, 3, 4])}
    assert await history(saver, configs[2], "ch") == {"ch": (["s0"], [0, 1])}


async def test_the_seeds_own_writes_come_after_it(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, snapshot([0], "older"), snapshot([1], "at"), wrote("after"), wrote("head"))
    assert await history(saver, configs[3], "ch") == {"ch": ([1], ["at", "after"])}


async def test_what_is_written_under_the_checkpoint_itself_is_left_out(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, snapshot([0]), wrote(1), wrote(2))
    assert await history(saver, configs[2], "ch") == {"ch": ([0], [1])}


async def test_channels_end_where_each_has_its_value(saver: Any, thread: str) -> None:
    both = [{}, [("a", 0), ("b", 0)]], [{}, [("a", 1), ("b", 1)]], [{}, [("a", 2), ("b", 2)]], [{}, []]
    steps: list[Any] = [({"a": _DeltaSnapshot("A")} if n == 0 else {"b": _DeltaSnapshot("B")} if n == 2 else {}, writes)
                        for n, (_, writes) in enumerate(both)]  # fmt: skip
    configs = await chain(saver, thread, *steps)
    assert await history(saver, configs[3], "a", "b") == {"a": ("A", [0, 1, 2]), "b": ("B", [2])}


async def test_without_a_value_there_is_no_seed(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, wrote(0), wrote(1), wrote(2))
    assert await history(saver, configs[2], "ch", "never") == {"ch": (..., [0, 1]), "never": (..., [])}


async def test_no_channels_are_nothing(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, wrote(0))
    assert await history(saver, configs[0]) == {}


async def test_a_plain_value_from_before_the_channel_was_one_is_a_seed(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, ({"ch": [10]}, [("ch", [11])]), ({"ch": [10, 11]}, []), wrote(12), wrote(13))
    assert await history(saver, configs[3], "ch") == {"ch": ([10, 11], [12])}


async def test_only_ancestors_count_where_a_thread_forks(saver: Any, thread: str) -> None:
    trunk = await chain(saver, thread, snapshot([0]), wrote("trunk"), wrote("left"), wrote("left too"))
    right = await chain(saver, thread, wrote("right"), wrote("end"), parent=trunk[1])
    assert await history(saver, right[1], "ch") == {"ch": ([0], ["trunk", "right"])}


async def test_parallel_writes_come_in_the_order_of_their_paths(saver: Any, thread: str) -> None:
    configs = await chain(saver, thread, snapshot([0]), wrote(), wrote())
    await saver.aput_writes(configs[1], [("ch", "third")], FIRST_TASK, "~__pregel_pull, z")
    await saver.aput_writes(configs[1], [("ch", "second")], LAST_TASK, "~__pregel_pull, a")
    await saver.aput_writes(configs[1], [("ch", "first")], LAST_TASK.replace("f", "e"))
    assert await history(saver, configs[2], "ch") == {"ch": ([0], ["first", "second", "third"])}


async def test_the_latest_is_meant_where_no_id_is_given_and_nothing_is_found_of_nothing(
    saver: Any, thread: str
) -> None:
    latest: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    assert await history(saver, latest, "ch") == {"ch": (..., [])}
    await chain(saver, thread, snapshot([0], 1), wrote(2))
    assert await history(saver, latest, "ch") == {"ch": ([0], [1])}


ALL = [
    test_writes_come_oldest_first_from_the_nearest_value_on,
    test_the_seeds_own_writes_come_after_it,
    test_what_is_written_under_the_checkpoint_itself_is_left_out,
    test_channels_end_where_each_has_its_value,
    test_without_a_value_there_is_no_seed,
    test_no_channels_are_nothing,
    test_a_plain_value_from_before_the_channel_was_one_is_a_seed,
    test_only_ancestors_count_where_a_thread_forks,
    test_parallel_writes_come_in_the_order_of_their_paths,
    test_the_latest_is_meant_where_no_id_is_given_and_nothing_is_found_of_nothing,
]
