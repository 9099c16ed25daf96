"""Thread state: what a change does to an entry, applied once; what it holds and frees of values."""

from hypothesis import given
from hypothesis import strategies as st
from tests.core.build import blob, key

from agentvisor.core.applying import apply
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import PutBlobs
from agentvisor.core.store import Store
from agentvisor.core.thread_state import MADE_CHANGES, ChangeKind, StateChange, ThreadState
from agentvisor.core.weighing import state_bytes, stored_bytes, unsheddable_blobs, unsheddable_bytes
from agentvisor.protocol.convert import operation_from_bytes, operation_to_bytes
from agentvisor.protocol.stores import store_from_message, store_to_message


def change(
    kind: ChangeKind, revision: int, name: str = "k", value: str = "", *, is_list: bool = False, change_id: bytes = b""
) -> StateChange:
    held = key(value) if value else None
    return StateChange("s", name, kind, revision, 7, held, is_list, 2 if is_list else 0, change_id)


def applied(store: Store, *changes: StateChange) -> Store:
    for one in changes:
        if one.blob is not None:
            apply(store, PutBlobs((blob(one.blob.decode()),)))
        apply(store, one)
    return store


CHANGES = st.lists(
    st.tuples(st.sampled_from(ChangeKind), st.sampled_from("ab"), st.sampled_from(["v", "w", "x"])), max_size=30
)


@given(given=CHANGES)
def test_it_is_what_a_dictionary_of_lists_would_be_and_holds_no_value_that_nothing_needs(
    given: list[tuple[ChangeKind, str, str]],
) -> None:
    store, model = Store(), dict[str, list[BlobKey]]()
    for revision, (kind, name, value) in enumerate(given, 1):
        one = change(kind, revision, name, "" if kind is ChangeKind.DELETE else value, is_list=True)
        applied(store, operation_from_bytes(operation_to_bytes(one)))  # type: ignore[arg-type]
        apply(store, one)  # what comes twice counts once
        match kind:
            case ChangeKind.DELETE:
                model.pop(name, None)
            case ChangeKind.SET:
                model[name] = [key(value)]
            case _:
                model.setdefault(name, []).append(key(value))
    assert {entry.key: entry.blobs for entry in store.state} == model
    store.drop_unreferenced_blobs()
    needed = {one for held in model.values() for one in held}
    assert store.blobs.keys() == needed == unsheddable_blobs(store)
    assert store_from_message(store_to_message(store, [], blobs=True)) == store


def test_an_append_after_a_set_adds_to_the_list_and_a_set_replaces_it_all() -> None:
    store = applied(
        Store(), change(ChangeKind.SET, 1, value="v", is_list=True), change(ChangeKind.APPEND, 2, value="w")
    )
    entry = store.state.get("s", "k")
    assert entry is not None
    assert (entry.value, entry.value_items, entry.items, entry.revision) == (key("v"), 2, [key("w")], 2)
    applied(store, change(ChangeKind.SET, 3, value="x"))
    entry = store.state.get("s", "k")
    assert entry is not None
    assert (entry.value, entry.is_list, entry.items, list(store.blobs)) == (key("x"), False, [], [key("x")])


def test_a_revision_never_comes_again_although_the_entry_was_deleted() -> None:
    store = applied(Store(), change(ChangeKind.SET, 1, value="v"), change(ChangeKind.DELETE, 2))
    assert store.state.revision == 2
    assert not store.blobs
    applied(store, change(ChangeKind.SET, 3, value="v"))
    assert store.state.get("s", "k").revision == 3  # type: ignore[union-attr]


def test_the_last_changes_that_have_a_name_are_known_and_no_more() -> None:
    state = ThreadState()
    for revision in range(1, MADE_CHANGES + 3):
        state.change(change(ChangeKind.DELETE, revision, change_id=b"%d" % revision))
    assert len(state.made) == MADE_CHANGES
    assert state.made[b"%d" % (MADE_CHANGES + 2)] == MADE_CHANGES + 2
    assert b"1" not in state.made


def test_entries_are_listed_in_the_order_of_their_keys_by_prefix_and_page() -> None:
    store = applied(Store(), *(change(ChangeKind.SET, n, name, "v") for n, name in enumerate(["b", "a/2", "a/1"], 1)))
    assert [one.key for one in store.state.listed("s", "", "")] == ["a/1", "a/2", "b"]
    assert [one.key for one in store.state.listed("s", "a/", "a/1")] == ["a/2"]
    assert store.state.listed("other", "", "") == []


def test_it_is_weighed_with_its_values_and_can_never_be_left_out() -> None:
    store = applied(Store(), *(change(ChangeKind.APPEND, n, value=f"v{n}") for n in range(1, 11)))
    assert unsheddable_bytes(store) == stored_bytes(store) == state_bytes(store) > 10 * 40
