"""Saves: ids in their order whatever the clock says, namespaces that no graph's reclamation touches."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.build import blob, key
from tests.core.test_namespaces import applied, super_step

from agentvisor.core import saves
from agentvisor.core.copying import head_alone
from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import ROOT, CheckpointId
from agentvisor.core.records import Checkpoint, DeleteForRuns, Prune, PutBlobs
from agentvisor.core.store import Store
from agentvisor.core.weighing import stale_namespaces, unsheddable_bytes

ONE = 1_700_000_000_000_000_000
CHANCE = st.integers(0, (1 << 62) - 1)


def save(name: str, number: int, value: str = "v") -> Checkpoint:
    made = saves.new_id(ONE + number * 1_000_000, number, "")
    return Checkpoint(saves.namespace_of(name), made, None, "json", b"{}", b"", {name: key(value)}, "ts")


@given(clocks=st.lists(st.tuples(st.integers(0, 1 << 62), CHANCE), min_size=2, max_size=20))
def test_a_later_save_has_the_greater_id_although_the_clock_goes_backwards(clocks: list[tuple[int, int]]) -> None:
    latest = ""
    for now, chance in clocks:
        made = saves.new_id(now, chance, latest)
        assert made > latest
        saves.check_save(saves.namespace_of("k"), made)
        latest = made


@pytest.mark.parametrize("made", ["", "~", "1efb2c3d", "ffffffff-ffff-7fff-bfff-ffffffffffff", "é" * 36])
def test_an_id_that_would_stand_out_of_order_is_refused(made: str) -> None:
    with pytest.raises(InvalidInput, match="no id of a save"):
        saves.check_save(saves.namespace_of("k"), CheckpointId(made))


def test_a_key_may_hold_what_tells_the_namespaces_of_tasks() -> None:
    store = applied(Store(keep=2), PutBlobs((blob("v"),)), save("chat:1|x", 1))
    for number in range(12):
        applied(store, *super_step(number, 3))
    assert saves.key_of(saves.namespace_of("chat:1|x")) == "chat:1|x"
    assert saves.namespace_of("chat:1|x") in store.checkpoints
    assert saves.namespace_of("chat:1|x") not in stale_namespaces(store, store.heads[ROOT])


def test_each_key_keeps_as_many_as_the_history_says_and_its_latest_is_never_left_out() -> None:
    store = Store(keep=3)
    for number in range(10):
        applied(store, PutBlobs((blob(f"v{number}"),)), save("a", number, f"v{number}"))
    weight = unsheddable_bytes(store)
    applied(store, PutBlobs((blob("other"),)), save("b", 20, "other"))
    assert [len(group) for group in store.checkpoints.values()] == [3, 1]
    assert len(store.blobs) == 4
    assert unsheddable_bytes(store) > weight
    applied(store, Prune(keep_latest=True))
    assert [one.channels for one in store.newest_first()] == [{"b": key("other")}, {"a": key("v9")}]


def test_lists_of_a_graph_and_lists_of_saves_are_apart() -> None:
    store = applied(Store(), *super_step(1, 2), PutBlobs((blob("v"),)), save("k", 1))
    assert {one.namespace for one in store.newest_first(saves=True)} == {saves.namespace_of("k")}
    assert len([*store.newest_first(saves=False)]) == 3
    assert len([*store.newest_first()]) == 4
    assert store.latest_save() == next(store.newest_first(saves=True))
    assert Store().latest_save() is None


def test_what_a_run_saved_goes_with_what_it_made() -> None:
    values = PutBlobs((blob("v1"), blob("v2")))
    store = applied(Store(), values, save("a", 1, "v1"), replace(save("a", 2, "v2"), run_id="doomed"))
    applied(store, DeleteForRuns(frozenset({"doomed"})))
    assert [one.channels for one in store.newest_first()] == [{"a": key("v1")}]
    assert list(store.blobs) == [key("v1")]


def test_a_copy_of_a_graph_leaves_saves_behind_and_one_without_a_graph_has_the_latest_of_each_key() -> None:
    values = PutBlobs((blob("v1"), blob("v2"), blob("w")))
    kept = [save("a", 1, "v1"), save("a", 2, "v2"), save("b", 3, "w")]
    copy = head_alone(applied(Store(), values, *kept))
    assert copy is not None
    assert sorted(copy.blobs) == [key("v2"), key("w")]
    assert [one.channels for one in copy.store.newest_first()] == [{"b": key("w")}, {"a": key("v2")}]
    of_graph = head_alone(applied(Store(), *super_step(1, 0), values, *kept))
    assert of_graph is not None
    assert {one.namespace for one in of_graph.store.all_checkpoints()} == {ROOT}
    assert of_graph.anew == []
