"""Only JSON leaves a plain agent, and what is not JSON is found by its place."""

from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Interrupt

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.plain_json import MAX_DEPTH, encode


@dataclass
class Point:
    x: int
    y: Any = None


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, b"null"),
        ({"a": [1, 2.5, True, "\u00fc"]}, '{"a":[1,2.5,true,"\u00fc"]}'.encode()),
        ((1, (2,)), b"[1,[2]]"),
        (Point(1, [Point(2)]), b'{"x":1,"y":[{"x":2,"y":null}]}'),
        (2**70, str(2**70).encode()),
        ("half \ud83d", rb'"half \ud83d"'),
    ],
)
def test_json_and_what_declares_its_fields_is_encoded(value: Any, expected: bytes) -> None:
    assert encode(value, "output") == expected


def test_the_result_of_a_graph_is_encoded() -> None:
    encoded = encode({"messages": [HumanMessage("hi")], "__interrupt__": [Interrupt(value="sure?")]}, "output")
    assert b'"content":"hi"' in encoded
    assert b'"value":"sure?"' in encoded


@pytest.mark.parametrize(
    "value, message",
    [
        ({"a": {1, 2}}, "output['a'] is not JSON: set"),
        ({"steps": [1, {"f": object()}]}, "output['steps'][1]['f'] is not JSON: object"),
        ([float("nan")], "output[0] is nan, which JSON does not have"),
        ({1: 2}, "output has the key 1, and keys are text in JSON"),
        (b"bytes", "output is not JSON: bytes"),
        (Point, "output is not JSON: type"),
        (Point(1, y={3}), "output['y'] is not JSON: set"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode(value, "output")
    assert refused.value.message == message


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
def test_what_is_nested_too_deep_is_refused_with_its_place(levels: int) -> None:
    assert encode(nested(MAX_DEPTH), "output").endswith(b"{}" + b"}" * (MAX_DEPTH - 1))
    with pytest.raises(InvalidInput) as refused:
        encode({"steps": [1, nested(levels)]}, "output")
    assert refused.value.message.startswith("output['steps'][1]['a']['a']")
    assert "is nested more than 200 levels deep: give it out flatter, or as text" in refused.value.message
    assert len(refused.value.message) < 400


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append([loop])
    with pytest.raises(InvalidInput, match=r"output\[0\]\[0\] contains itself"):
        encode(loop, "output")
    twice = [1]
    assert encode([twice, twice], "output") == b"[[1],[1]]"
