"""Namespaces are those of LangGraph's store, and so is what a pattern matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError, MatchCondition
from langgraph.store.base import _validate_namespace as langgraphs_rule  # pyright: ignore[reportPrivateUsage]
from langgraph.store.memory import _does_match  # pyright: ignore[reportPrivateUsage]

from agentvisor.core.errors import InvalidInput
from agentvisor.core.item_namespaces import item_key, literal_beginning, matches, readable, writable

LABELS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4).map(tuple)
PATTERNS = st.lists(st.sampled_from(["a", "b", "*"]), max_size=3).map(tuple)
TEXTS = st.lists(st.sampled_from(["a", "langgraph", "", "a.b", "*", "é", "a b", "/"]), max_size=3).map(tuple)


@given(LABELS, PATTERNS, PATTERNS)
def test_patterns_match_as_they_do_there(
    namespace: tuple[str, ...], prefix: tuple[str, ...], suffix: tuple[str, ...]
) -> None:
    expected = all(
        _does_match(MatchCondition(kind, path), namespace)  # type: ignore[arg-type]
        for kind, path in (("prefix", prefix), ("suffix", suffix))
        if path
    )
    assert matches(namespace, prefix, suffix) == expected
    if expected:
        beginning = literal_beginning(prefix)
        assert namespace[: len(beginning)] == beginning


@given(TEXTS)
def test_what_may_be_written_to_is_what_may_be_there(labels: tuple[str, ...]) -> None:
    try:
        langgraphs_rule(labels)
    except InvalidNamespaceError:
        with pytest.raises(InvalidInput):
            writable(labels)
    else:
        assert writable(labels) == labels
        assert readable(labels) == labels


@pytest.mark.parametrize("labels", [("a",) * 33, ("x" * 2049,), ("é" * 1025,), ("\ud800",)])
def test_namespaces_have_bounds(labels: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        readable(labels)


@pytest.mark.parametrize("key", ["x" * 1025, "\ud800"])
def test_keys_have_bounds(key: str) -> None:
    with pytest.raises(InvalidInput):
        item_key(key)
    assert item_key("") == ""
