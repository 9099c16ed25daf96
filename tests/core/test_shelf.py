"""A shelf against a plain dictionary: whatever comes in whatever order, it shows what it should and fits its limit."""

from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import Conflict, StateTooLarge
from agentvisor.core.shelf import Change, ChangeKind, Shelf, ShelfName
from agentvisor.protocol.shelves import (
    changes_from_messages,
    changes_to_messages,
    shelf_from_message,
    shelf_to_message,
)
from agentvisor.protocol.v1 import items_pb2

NAME = ShelfName("items", "me", ("a", "b"))
KEYS = st.sampled_from(["a", "b", "é" * 20])
CHANGES = st.builds(
    Change,
    st.sampled_from(ChangeKind),
    KEYS,
    st.sampled_from([b"{}", b'{"n":1}', b'{"t":"' + b"x" * 300 + b'"}']),
    st.sampled_from([0, 0, 30, 100]),
    st.sampled_from([None, None, 0, 1, 2]),
)
STEPS = st.lists(st.tuples(st.integers(0, 60), st.lists(CHANGES, min_size=1, max_size=3)), max_size=12)
LIMIT = 4096 + 900


@given(STEPS)
def test_a_shelf_is_a_dictionary_whose_items_expire(steps: list[tuple[int, list[Change]]]) -> None:
    shelf, model, now = Shelf(NAME), dict[str, tuple[bytes, int, int]](), 1_000
    for later, changes in steps:
        now += later
        model = {key: one for key, one in model.items() if not one[2] or now < one[2]}
        before = {**shelf.items}
        try:
            shelf.check(changes, now, LIMIT)
        except (Conflict, StateTooLarge):
            assert shelf.items == before
            continue
        shelf.apply(changes, now)
        for change in changes:
            if change.kind is ChangeKind.SET:
                model[change.key] = (change.value, change.ttl_ms, now + change.ttl_ms if change.ttl_ms else 0)
            elif change.kind is ChangeKind.REMOVE:
                model.pop(change.key, None)
            elif change.key in model and model[change.key][1]:
                value, ttl, _ = model[change.key]
                model[change.key] = (value, ttl, now + ttl)
        shown = shelf.select(limit=100, now_ms=now)
        assert {one.key: (one.value, one.ttl_ms, one.expires_at_ms) for one in shown.items} == model
        assert shelf.alive(now) == shown.matched == len(model)
        encoded = shelf_to_message(shelf)
        assert len(encoded.SerializeToString()) <= shelf.stored_bytes <= max(LIMIT, 4096)
        assert shelf_from_message(items_pb2.Shelf.FromString(encoded.SerializeToString())) == shelf


@given(st.lists(CHANGES, max_size=4))
def test_changes_go_over_the_wire_as_they_are(changes: list[Change]) -> None:
    sent = [
        Change(one.kind, one.key, one.value if one.kind is ChangeKind.SET else b"", one.ttl_ms, one.expected_revision)
        for one in changes
    ]
    assert changes_from_messages(changes_to_messages(changes)) == sent


def test_a_full_shelf_takes_what_makes_it_smaller() -> None:
    shelf = Shelf(NAME)
    shelf.apply([Change(ChangeKind.SET, "a", b"{" + b" " * 1_000 + b"}")], 1)
    smaller = Change(ChangeKind.SET, "a", b"{" + b" " * 500 + b"}")
    shelf.check([smaller], 2, 4_100)  # the limit has been lowered since
    shelf.apply([smaller], 2)
    assert shelf.items["a"].value == smaller.value
    assert (shelf.items["a"].created_at_ms, shelf.items["a"].updated_at_ms) == (1, 2)
