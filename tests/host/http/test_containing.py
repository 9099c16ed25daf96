"""What contains what, as PostgreSQL's documentation of `@>` says, and which paths lead where."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.containing import contains
from agentvisor.host.http.extracting import extracted, paths_of
from agentvisor.protocol.convert import struct_to_bytes
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.reads import KEYWORDS, KEYWORDS_BYTES, keyword, keywords


@pytest.mark.parametrize(
    "whole, part, is_so",
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [2]}}, True),
        ({"a": 1}, {}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": [1, [2, 3]]}, {"a": [[3]]}, True),
        ({"a": [1, 2]}, {"a": [3]}, False),
        ({"a": [1, 2]}, {"a": 1}, False),
        ({"a": {"b": 1}}, {"a": []}, False),
        (None, {"a": 1}, False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
    ],
)
def test_a_value_contains_another(whole: Any, part: Any, is_so: bool) -> None:  # noqa: FBT001
    assert contains(whole, part) is is_so


THREAD = {"values": {"log": ["a", {"b": [1, 2]}], "a b": 3}, "metadata": {}, "config": {}, "interrupts": {}}


@pytest.mark.parametrize(
    "path, leads_to",
    [
        ("values.log[0]", "a"), ("values.log[-1].b[1]", 2), ("values.a b", 3), ("values.log[2]", None),
        ("values.log[-3]", None), ("values.log.b", None), ("values[0]", None), ("values.nope.nope", None),
        ("metadata", {}), ("values.log[0][0]", None),
    ],
)  # fmt: skip
def test_a_path_leads_into_a_thread(path: str, leads_to: Any) -> None:
    assert extracted(THREAD, paths_of({"it": path}, ())) == {"it": leads_to}


@pytest.mark.parametrize(
    "name, path",
    [
        ("a", "status"), ("a", ""), ("a", "valuesx"), ("a", "values."), ("a", "values..b"), ("a", "values.log["),
        ("a", "values.log[x]"), ("a", "values.log[1.5]"), ("a", "values.log[9999999999]"), ("a", "values" + ".a" * 300),
        ("a'b", "values"), ("", "values"), ("a b", "values"), ("status", "values"), ("é", "values"),
    ],
)  # fmt: skip
def test_what_is_no_path_or_no_name_is_refused(name: str, path: str) -> None:
    with pytest.raises(InvalidInput, match="extract"):
        paths_of({name: path}, ("status",))


def test_more_paths_than_ten_are_refused() -> None:
    with pytest.raises(InvalidInput, match="11 paths, 10 at most"):
        paths_of({f"a{number}": "values" for number in range(11)}, ())


def test_no_two_values_of_metadata_have_the_same_term() -> None:
    values = [
        "1", 1, "true", True, "=1", "==1", 1.5, "1.5", "a", "=a", "", "False", False, "-1", -1, "1e3", 1000, "A", "^a",
        "é", "É", "e", "E", " a", "a ", "a", "'", '"', "\\", "\x00", "%41", "♡", "a♡b", "a%e2%99%a1b", "\n", " ", "  ",
    ]  # fmt: skip
    values = [*dict.fromkeys((type(value), value) for value in values)]
    terms = [keyword("key", value) for _, value in values]
    assert len(set(terms)) == len(values)
    assert keyword("key", 1.0) == keyword("key", 1) == "key=1"
    assert keyword("team", "refunds") == "team=refunds"
    assert keyword("a=b", "c") != keyword("a", "b=c")


@pytest.mark.parametrize("key, value", [("a" * 100, "b" * 100), ("a", "é" * 100), ("a", 10**300), ("a" * 10**6, "b")])
def test_what_is_too_long_for_the_index_has_no_term(key: str, value: Any) -> None:
    assert keyword(key, value) is None


@given(st.text(), st.text())
def test_a_term_is_plain_and_cannot_end_a_text_of_a_query(key: str, value: str) -> None:
    term = keyword(key, value)
    assert term is None or re.fullmatch(r"[a-z0-9_.:/@+=,;() ^%-]{1,200}", term)
    assert term is None or term.strip() == term


@given(
    st.dictionaries(st.text(), st.text(max_size=200) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
)
def test_the_terms_of_a_thread_fit_into_what_temporal_takes(metadata: dict[str, Any]) -> None:
    terms = keywords(struct_to_bytes(metadata_to_struct(metadata)))
    assert len(json.dumps(terms).encode()) <= KEYWORDS_BYTES
    assert len(terms) <= KEYWORDS
