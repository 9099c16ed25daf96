"""What contains what, as PostgreSQL's documentation of `@>` says, and which paths lead where."""

from typing import Any

import pytest

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.containing import contains
from agentvisor.host.http.extracting import extracted, paths_of


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
