"""Whom a thread belongs to: the rule itself, and names that no query can be made of."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, LONGEST, Owner, check_owner, keyword, may_touch, owner

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=LONGEST)


@given(NAMES, NAMES)
def test_an_owner_touches_what_is_theirs_and_nothing_else(one: str, other: str) -> None:
    caller = owner(one)
    assert may_touch(caller, one)
    assert may_touch(caller, other) is (one == other)
    assert not may_touch(caller, ""), "a thread of nobody is the operator's"
    assert may_touch(EVERYONE, one)


def test_that_another_owners_thread_exists_is_not_told() -> None:
    with pytest.raises(NotFound) as caught:
        check_owner(ThreadId("t"), "b", "a")
    assert (caught.value.message, caught.value.details) == ("thread t does not exist", {"thread_id": "t"})


@given(st.text())
def test_a_name_is_allowed_whole_or_refused(text: str) -> None:
    allowed = 0 < len(text) <= LONGEST and not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", text)
    if allowed:
        assert owner(text) == text
    else:
        with pytest.raises(InvalidInput, match="is not allowed"):
            owner(text)


@given(NAMES)
def test_no_query_can_be_made_of_a_name(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9@_.%:-]{1,200}", keyword(owner(text)))


@given(st.lists(NAMES, unique=True, max_size=20))
def test_different_owners_are_told_apart_in_a_search(names: list[str]) -> None:
    """Also by a database that does not tell capitals from small letters."""
    assert len({keyword(Owner(name)).casefold() for name in names}) == len(names)


ALIKE = [
    ("a%20b", "a b"),
    ("A", "a"),
    ("A", "%41"),
    ("%41", "%%34%31"),
    ("\u00e9", "e\u0301"),
    ("x" * 400, "x" * 401),
]


@pytest.mark.parametrize("one, other", ALIKE)
def test_names_that_look_alike_are_different_owners(one: str, other: str) -> None:
    assert keyword(owner(one)).casefold() != keyword(owner(other)).casefold()
