"""Filters let through what LangGraph's own store lets through, and refuse what that one fails on."""

from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langgraph.store.memory import _compare_values  # pyright: ignore[reportPrivateUsage]

from agentvisor.core.errors import InvalidInput
from agentvisor.core.item_filter import check_filter, passes

KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "1", "x", "", "-2"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
CONDITIONS = st.recursive(
    SCALARS | st.dictionaries(OPERATORS, SCALARS, min_size=1, max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, CONDITIONS, max_size=2))
def test_what_langgraphs_store_can_compare_is_compared_alike(value: dict[str, Any], asked: dict[str, Any]) -> None:
    try:
        langgraphs = all(_compare_values(value.get(key), condition) for key, condition in asked.items())
    except (ValueError, TypeError):
        assume(False)
        return
    try:
        check_filter(asked)
    except InvalidInput:
        return  # that one had nothing to compare the wrong part with
    assert passes(value, asked) == langgraphs


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, CONDITIONS, max_size=2))
def test_a_filter_that_was_let_in_fails_on_no_value(value: dict[str, Any], asked: dict[str, Any]) -> None:
    try:
        check_filter(asked)
    except InvalidInput:
        return
    assert passes(value, asked) in (True, False)


@pytest.mark.parametrize(
    "asked, says",
    [
        ({"a": {"$foo": 1}}, "unknown operator '$foo'"),
        ({"a": {"$gt": 1, "b": 2}}, "unknown operator 'b'"),
        ({"a": {"$gt": "x"}}, "filter.a: $gt compares numbers"),
        ({"a": {"b": [{"$lt": None}]}}, "filter.a.b: $lt compares numbers"),
        ({"": 1}, "filter key"),
        ({"a\n": 1}, "filter key"),
        ({"k" * 300: 1}, "filter key"),
        ({str(number): 1 for number in range(101)}, "101 conditions"),
    ],
)
def test_what_could_not_be_applied_is_refused_by_name(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_filter(cast("dict[str, object]", asked))
    assert says in caught.value.message
    assert caught.value.details == {"field": "filter"}
