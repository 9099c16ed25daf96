"""LangGraph's rules of the store: which write counts, which checkpoint is the latest, what a reader gets."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.build import at, blob, checkpoint, key, projection, write, writes

from agentvisor.core.applying import apply
from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.records import Operation, PutBlobs
from agentvisor.core.store import Store
from agentvisor.core.weighing import unsheddable_bytes


def store_of(*operations: Operation) -> Store:
    store = Store()
    for operation in operations:
        apply(store, operation)
    return store


def values(store: Store, number: int) -> dict[tuple[str, int], str]:
    return {(task.task_id, one.idx): one.data.decode() for task in store.pending(at(number)) for one in task.writes}


# --- writes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("idx, counts", [(0, "first"), (7, "first"), (-1, "last"), (-4, "last")])
def test_of_regular_writes_the_first_counts_and_of_control_writes_the_last(idx: int, counts: str) -> None:
    store = store_of(checkpoint(1), writes(1, write(idx, "first")), writes(1, write(idx, "last")))
    assert values(store, 1) == {("task", idx): counts}


@pytest.mark.parametrize("idx", [0, -1])
def test_within_one_call_the_same_rule_holds(idx: int) -> None:
    store = store_of(writes(1, write(idx, "first"), write(idx, "last")))
    assert values(store, 1) == {("task", idx): "first" if idx >= 0 else "last"}


def test_regular_and_control_writes_of_a_task_live_side_by_side() -> None:
    store = store_of(writes(1, write(0, "value"), write(1, "other")), writes(1, write(-3, "interrupt")))
    assert values(store, 1) == {("task", -3): "interrupt", ("task", 0): "value", ("task", 1): "other"}


def test_writes_of_other_tasks_checkpoints_and_namespaces_are_not_touched() -> None:
    store = store_of(
        writes(1, write(0, "a"), task="a"),
        writes(1, write(0, "b"), task="b"),
        writes(2, write(0, "second"), task="a"),
        writes(1, write(0, "inner"), task="a", namespace="sub|1"),
    )
    assert values(store, 1) == {("a", 0): "a", ("b", 0): "b"}
    assert values(store, 2) == {("a", 0): "second"}
    assert [task.writes[0].data for task in store.pending(at(1, "sub|1"))] == [b"inner"]


def test_writes_that_come_before_their_checkpoint_are_kept_for_it() -> None:
    store = store_of(writes(1, write(0, "early")))
    assert store.get(ROOT) is None
    apply(store, checkpoint(1))
    found = store.get(ROOT)
    assert found is not None
    assert [task.task_id for task in found.pending] == ["task"]


def test_writes_are_read_by_task_path_then_task_then_idx() -> None:
    store = store_of(
        checkpoint(1),
        writes(1, write(1, "x"), write(0, "y"), task="z", path="a"),
        writes(1, write(0, "x"), task="a", path="b"),
        writes(1, write(0, "x"), write(-1, "e"), task="b", path="b"),
    )
    found = store.get(ROOT)
    assert found is not None
    assert [(task.task_path, task.task_id, [one.idx for one in task.writes]) for task in found.pending] == [
        ("a", "z", [0, 1]),
        ("b", "a", [0]),
        ("b", "b", [-1, 0]),
    ]


# --- checkpoints -----------------------------------------------------------------------------------------------------


@given(st.permutations(range(5)))
def test_the_latest_is_the_greatest_id_and_not_the_last_that_came(order: list[int]) -> None:
    store = store_of(*(checkpoint(number) for number in order))
    found = store.get(ROOT)
    assert found is not None
    assert found.checkpoint.checkpoint_id == "0004"
    assert [one.checkpoint_id for one in store.newest_first(ROOT)] == ["0004", "0003", "0002", "0001", "0000"]


def test_each_namespace_has_its_own_latest() -> None:
    store = store_of(checkpoint(1), checkpoint(9, namespace="sub|1"), checkpoint(2))
    assert store.heads == {"": "0002", "sub|1": "0009"}


def test_a_checkpoint_put_again_replaces_itself_and_changes_nothing_else() -> None:
    store = store_of(checkpoint(1), writes(1, write(0, "kept")), checkpoint(2), checkpoint(1, record=b"again"))
    found = store.get(ROOT, CheckpointId("0001"))
    assert found is not None
    assert found.checkpoint.record == b"again"
    assert found.pending
    assert store.heads[ROOT] == "0002"


def test_before_compares_ids_across_namespaces() -> None:
    store = store_of(*(checkpoint(number, namespace=ns) for number in range(4) for ns in ("", "a|1", "b|2")))
    found = [(one.checkpoint_id, one.namespace) for one in store.newest_first(before=CheckpointId("0002"))]
    assert found == [
        ("0001", "b|2"), ("0001", "a|1"), ("0001", ""), ("0000", "b|2"), ("0000", "a|1"), ("0000", ""),
    ]  # fmt: skip
    assert [one.checkpoint_id for one in store.newest_first(Namespace("a|1"), before=CheckpointId("0002"))] == [
        "0001",
        "0000",
    ]


def test_one_id_is_found_in_every_namespace_that_has_it() -> None:
    store = store_of(checkpoint(1), checkpoint(1, namespace="a|1"), checkpoint(2))
    assert {one.namespace for one in store.newest_first(checkpoint_id=CheckpointId("0001"))} == {"", "a|1"}


def test_what_is_not_there_is_none() -> None:
    store = store_of(checkpoint(1))
    assert store.get(ROOT, CheckpointId("0009")) is None
    assert store.get(Namespace("no|1")) is None
    assert list(store.newest_first(Namespace("no|1"))) == []


def test_a_projection_without_channels_keeps_those_of_its_namespace() -> None:
    store = store_of(projection(1, "node", channels=("messages",)), projection(2, "other"))
    assert store.channels[ROOT] == ("messages",)
    assert store.projections[at(2)].next == ("other",)


# --- blobs -----------------------------------------------------------------------------------------------------------


def test_a_chain_comes_bases_first_each_once() -> None:
    store = store_of(PutBlobs((blob("a"), blob("b", base="a", depth=1), blob("c", base="b", depth=2), blob("d"))))
    assert [one.key for one in store.chain([key("c"), key("b"), key("d")])] == [b"a", b"b", b"c", b"d"]


def test_a_chain_stops_at_what_the_caller_has() -> None:
    store = store_of(PutBlobs((blob("a"), blob("b", base="a", depth=1), blob("c", base="b", depth=2))))
    assert [one.key for one in store.chain([key("c")], have=frozenset([key("b")]))] == [b"c"]
    assert store.chain([key("c")], have=frozenset([key("c")])) == []


def test_unknown_blobs_are_left_out() -> None:
    assert store_of(PutBlobs((blob("a"),))).chain([key("nothing"), key("a")]) == [blob("a")]


def test_a_blob_that_is_there_is_not_replaced() -> None:
    store = store_of(PutBlobs((blob("a", data=b"one"),)), PutBlobs((blob("a", data=b"two"),)))
    assert store.blobs[key("a")].data == b"one"


def test_blobs_that_no_checkpoint_needs_are_dropped_and_bases_of_those_needed_stay() -> None:
    store = store_of(
        PutBlobs((blob("a"), blob("b", base="a", depth=1), blob("cut off"))), checkpoint(1, channels={"c": key("b")})
    )
    assert store.drop_unreferenced_blobs() == 1
    assert set(store.blobs) == {key("a"), key("b")}


# --- dropping and measuring ------------------------------------------------------------------------------------------


def test_what_cannot_be_left_out_counts_heads_and_not_regular_writes() -> None:
    store = store_of(PutBlobs((blob("a", data=b"x" * 1_000),)), checkpoint(1, channels={"c": key("a")}))
    alone = unsheddable_bytes(store)
    assert alone > 1_000
    apply(store, writes(1, write(0, "w" * 500)))
    assert unsheddable_bytes(store) == alone
    apply(store, writes(1, write(-1, "e" * 500)))
    assert unsheddable_bytes(store) > alone + 500


def test_a_checkpoint_that_is_coming_is_measured_in_the_place_of_its_namespaces_head() -> None:
    large, larger = blob("a", data=b"x" * 1_000), blob("b", data=b"y" * 1_100)
    store = store_of(PutBlobs((large, larger)), checkpoint(1, channels={"c": key("a")}))
    coming = checkpoint(2, channels={"c": key("b")})
    measured = unsheddable_bytes(store, coming)
    apply(store, coming)
    assert measured == unsheddable_bytes(store) < 2_000


def test_an_older_checkpoint_that_is_coming_changes_nothing() -> None:
    store = store_of(checkpoint(5))
    assert unsheddable_bytes(store, checkpoint(1, record=b"x" * 9_000)) == unsheddable_bytes(store)


# --- all of it -------------------------------------------------------------------------------------------------------

NUMBERS = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.builds(lambda number, ns: checkpoint(number, namespace=ns), NUMBERS, st.sampled_from(["", "a|1"])),
    st.builds(
        lambda number, idx, value, task: writes(number, write(idx, value), task=task),
        NUMBERS,
        st.integers(-2, 2),
        st.sampled_from("xyz"),
        st.sampled_from("ab"),
    ),
    st.builds(lambda name: PutBlobs((blob(name),)), st.sampled_from("pq")),
    st.builds(projection, NUMBERS, st.sampled_from("mn")),
)


@given(st.lists(OPERATIONS, max_size=25))
def test_every_read_agrees_with_a_model_that_only_remembers_the_operations(operations: list[Operation]) -> None:
    store = store_of(*operations)
    for number, namespace in itertools.product(range(4), ("", "a|1")):
        puts = [one for one in operations if getattr(one, "record", None) and one.key == at(number, namespace)]  # type: ignore[union-attr]
        found = store.get(Namespace(namespace), at(number).checkpoint_id)
        assert (found.checkpoint if found else None) == (puts[-1] if puts else None)
    expected: dict[tuple[int, str, int], str] = {}
    for operation in operations:
        for one in getattr(operation, "writes", ()):
            place = (int(operation.checkpoint_id), operation.task_id, one.idx)  # type: ignore[union-attr]
            if one.idx < 0 or place not in expected:
                expected[place] = one.data.decode()
    seen = {(number, *place): value for number in range(4) for place, value in values(store, number).items()}
    assert seen == expected
    for namespace, group in store.checkpoints.items():
        assert store.heads[namespace] == max(group)


@given(st.lists(OPERATIONS, max_size=15))
def test_a_log_that_is_applied_again_as_a_whole_changes_no_regular_write_and_no_checkpoint(
    operations: list[Operation],
) -> None:
    once, again = store_of(*operations), store_of(*operations, *operations)
    assert once == again
