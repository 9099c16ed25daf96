"""Where the host prunes, the SDK sends again what is gone; what is kept reads as if nothing had been pruned."""

import random
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.langgraph_saver import THREAD, at, checkpoint

from agentvisor.langgraph import AgentVisorCheckpointer

KEEP = 3
NAMESPACES = ("", "child")


def go_on(saver: BaseCheckpointSaver[str], parent: Any, changes: dict[str, Any], one: Any) -> Any:
    return saver.put(parent, one, {}, {channel: one["channel_versions"][channel] for channel in changes})


def test_a_value_that_comes_back_after_it_was_pruned_is_sent_again() -> None:
    double = StoreDouble(keep=2)
    with way_to(double, "socketpair") as transport:
        saver = AgentVisorCheckpointer(transport=transport)
        values = [[name] * 500 for name in "abcde"]
        config = THREAD
        for number in range(15):
            version = f"{number:08}"
            one = checkpoint({"n": values[number % 5]}, {"n": version})
            config = saver.put(config, one, {}, {"n": version})
            assert at(saver.get_tuple(config)) == {"n": values[number % 5]}
        assert len(double.puts()) > 15  # some were refused, and sent whole


def test_a_fork_of_a_checkpoint_that_is_pruned_by_it_keeps_its_values() -> None:
    with way_to(StoreDouble(keep=2), "socketpair") as transport:
        saver, other = AgentVisorCheckpointer(transport=transport), AgentVisorCheckpointer(transport=transport)
        first = saver.put(THREAD, checkpoint({"a": ["a"] * 500}, {"a": "1"}), {}, {"a": "1"})
        second = saver.put(first, checkpoint({"a": ["b"] * 500}, {"a": "2"}), {}, {"a": "2"})
        read = other.get_tuple(first)
        assert read is not None
        # The fork is the third, and the first, which it is made of, goes.
        forked = other.put(first, checkpoint(at(read) | {"b": 1}, {"a": "1", "b": "3"}), {}, {"b": "3"})
        assert other.get_tuple(first) is None
        assert at(saver.get_tuple(forked)) == {"a": ["a"] * 500, "b": 1}
        # And one who has not heard of it builds on what is gone.
        late = saver.put(first, checkpoint({"a": ["a"] * 500, "c": 2}, {"a": "1", "c": "4"}), {}, {"c": "4"})
        assert at(saver.get_tuple(late)) == {"a": ["a"] * 500, "c": 2}
        assert saver.get_tuple(second) is None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_reads_as_if_all_were_kept(seed: int) -> None:
    chance = random.Random(seed)
    pool = [["word" * chance.randrange(40), number] * chance.randrange(1, 30) for number in range(8)]
    model, known = InMemorySaver(), dict[str, list[Any]]({namespace: [] for namespace in NAMESPACES})
    with way_to(StoreDouble(keep=KEEP), "socketpair") as transport:
        savers = [AgentVisorCheckpointer(transport=transport) for _ in range(2)]
        for _ in range(40):
            saver, namespace = chance.choice(savers), chance.choice(NAMESPACES)
            kept = known[namespace][-KEEP:]
            parent: Any = (
                chance.choice(kept) if kept else {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            )
            if chance.random() < 0.5:
                saver.get_tuple(parent)
            found = model.get_tuple(parent)
            values = dict(found.checkpoint["channel_values"]) if found else {}
            versions: Any = dict(found.checkpoint["channel_versions"]) if found else {}
            changes = {name: chance.choice(pool) for name in chance.sample("abcd", chance.randrange(4))}
            versions |= {name: saver.get_next_version(versions.get(name), None) for name in changes}
            one = checkpoint(values | changes, versions)
            known[namespace].append(go_on(saver, parent, changes, one))
            go_on(model, parent, changes, one)
            for name, configs in known.items():
                for config in configs[-KEEP:]:
                    expected = model.get_tuple(config)
                    assert at(chance.choice(savers).get_tuple(config)) == at(expected)
                listed: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": name}}
                assert len(list(saver.list(listed))) == min(KEEP, len(configs))
