"""Metadata as terms of Temporal's index: each value has its own, and all of a thread's fit into what Temporal takes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.protocol.convert import struct_to_bytes
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.reads import KEYWORDS, KEYWORDS_BYTES, has_whole_floats, keywords, metadata_term


def test_no_two_values_of_metadata_have_the_same_term() -> None:
    values = [
        "1", 1, "true", True, "=1", "==1", 1.5, "1.5", "a", "=a", "", "False", False, "-1", -1, "1e3", 1000, "A", "^a",
        "é", "É", "e", "E", " a", "a ", "a", "'", '"', "\\", "\x00", "%41", "♡", "a♡b", "a%e2%99%a1b", "\n", " ", "  ",
    ]  # fmt: skip
    values = [*dict.fromkeys((type(value), value) for value in values)]
    terms = [metadata_term("key", value) for _, value in values]
    assert len(set(terms)) == len(values)
    assert metadata_term("key", 1.0) == metadata_term("key", 1) == "key=1"
    assert metadata_term("key", -0.0) == metadata_term("key", 0) == "key=0", "as in JSON: they are equal"
    assert metadata_term("team", "refunds") == "team=refunds"
    assert metadata_term("a=b", "c") != metadata_term("a", "b=c")


@pytest.mark.parametrize("value", [1, 1.0, -0.0, 2.0, 2.5, True, "1"])
def test_whatever_is_searched_by_stands_in_the_index(value: Any) -> None:
    kept = struct_to_bytes(metadata_to_struct({"key": value, "list": [1.0], "object": {"a": 1.0}}))
    assert keywords(kept) == [metadata_term("key", value)]
    assert has_whole_floats(kept) == (isinstance(value, float) and value.is_integer())
    assert keywords(kept, whole_floats=False) == ([] if has_whole_floats(kept) else keywords(kept))


@pytest.mark.parametrize("key, value", [("a" * 100, "b" * 100), ("a", "é" * 100), ("a", 10**300), ("a" * 10**6, "b")])
def test_what_is_too_long_for_the_index_has_no_term(key: str, value: Any) -> None:
    assert metadata_term(key, value) is None


@given(st.text(), st.text())
def test_a_term_is_plain_and_cannot_end_a_text_of_a_query(key: str, value: str) -> None:
    term = metadata_term(key, value)
    assert term is None or re.fullmatch(r"[a-z0-9_.:/@+=,;() ^%-]{1,200}", term)
    assert term is None or term.strip() == term


@given(
    st.dictionaries(st.text(), st.text(max_size=200) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
)
def test_the_terms_of_a_thread_fit_into_what_temporal_takes(metadata: dict[str, Any]) -> None:
    terms = keywords(struct_to_bytes(metadata_to_struct(metadata)))
    assert len(json.dumps(terms).encode()) <= KEYWORDS_BYTES
    assert len(terms) <= KEYWORDS


def test_graph_and_assistant_are_indexed_whatever_else_there_is() -> None:
    metadata = {f"a{number:03}": "x" * 150 for number in range(50)} | {"graph_id": "desk", "assistant_id": "1-2"}
    terms = keywords(struct_to_bytes(metadata_to_struct(metadata)))
    assert terms[:2] == ["assistant_id=1-2", "graph_id=desk"]
    assert terms[2:] == [f"a{number:03}=" + "x" * 150 for number in range(len(terms) - 2)]


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(), st.text())
def test_a_number_is_never_taken_for_a_text(number: float, text: str) -> None:
    term = metadata_term("key", number)
    assert term is None or term not in (metadata_term("key", text), metadata_term("key", json.dumps(number)))
