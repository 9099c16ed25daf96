"""Metadata comes back as it was, numbers included, and what is not JSON is refused by the name of its key."""

import math

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given, settings
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import MAX_DEPTH, metadata_from_struct, metadata_to_struct
from agentvisor.protocol.v1 import guest_pb2

keys = st.text(max_size=8) | st.sampled_from(["@agentvisor:float", "@agentvisor:object", "@agentvisor:", "a\x00b"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-1000, 1000).map(float)
    | st.text(max_size=12)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


def same(left: object, right: object) -> bool:
    """Equal in value and in type, which `==` alone does not ask of 1, 1.0 and True."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.copysign(1, left) == math.copysign(1, right) and left == right
    return left == right


@given(st.dictionaries(keys, values, max_size=4))
@settings(max_examples=400, deadline=None)
def test_every_json_object_comes_back_as_it_was(data: dict[str, object]) -> None:
    struct = Struct()
    struct.ParseFromString(metadata_to_struct(data).SerializeToString())
    assert same(metadata_from_struct(struct), data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"step": 3, "ratio": 0.5, "weight": 3.0, "minus": -0.0, "huge": 1e300, "whole": 2**53},
        {"yes": True, "no": False, "nothing": None, "empty": {}, "none": []},
        {"text": "with \x00 and ü and \U0001f600"},
        {"@agentvisor:float": 3},
        {"@agentvisor:float": 3.0},
        {"@agentvisor:object": {"@agentvisor:float": 1}},
        {"deep": {"@agentvisor:object": {"@agentvisor:object": {"x": 1.0}}}},
        {"@agentvisor:later": "a name that a newer version might use"},
    ],
)
def test_data_that_could_be_taken_for_something_else_comes_back_as_it_was(data: dict[str, object]) -> None:
    assert same(metadata_from_struct(metadata_to_struct(data)), data)


def test_a_tuple_comes_back_as_a_list() -> None:
    assert metadata_from_struct(metadata_to_struct({"counters": {"messages": (1, 2)}})) == {
        "counters": {"messages": [1, 2]}
    }


def handler() -> None:
    """Stands for what users put into metadata by mistake."""


@pytest.mark.parametrize(
    "data, path",
    [
        ({"handler": handler}, "metadata['handler']"),
        ({"a": {"b": [1, {2, 3}]}}, "metadata['a']['b'][1]"),
        ({"raw": b"bytes"}, "metadata['raw']"),
        ({"id": 2**53 + 1}, "metadata['id']"),
        ({"id": -(2**63)}, "metadata['id']"),
        ({"score": math.nan}, "metadata['score']"),
        ({"score": [math.inf]}, "metadata['score'][0]"),
        ({"a": {1: "x"}}, "metadata['a'][1]"),
        ({"half": "\ud800"}, "metadata['half']"),
        ({"a": {"\udfff": 1}}, "metadata['a']['\\udfff']"),
    ],
)
def test_what_is_not_json_is_refused_by_the_name_of_its_key(data: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        metadata_to_struct(data)
    assert path in caught.value.message
    assert caught.value.details["path"] == path


def nested(depth: int, kind: str) -> dict[str, object]:
    inner: object = 1.0
    for _ in range(depth - 1):
        inner = {"list": [inner], "object": {"a": inner}, "wrapper": {"@agentvisor:object": inner}}[kind]
    return {"a": inner}


@pytest.mark.parametrize("kind, depth", [("list", MAX_DEPTH), ("object", MAX_DEPTH), ("wrapper", MAX_DEPTH // 2)])
def test_the_deepest_that_is_taken_passes_the_longest_way_that_messages_go(kind: str, depth: int) -> None:
    message = guest_pb2.FromGuest()
    message.message.message.call.request.put.checkpoint.metadata.CopyFrom(metadata_to_struct(nested(depth, kind)))
    read = guest_pb2.FromGuest()
    read.ParseFromString(message.SerializeToString())
    assert same(metadata_from_struct(read.message.message.call.request.put.checkpoint.metadata), nested(depth, kind))
    with pytest.raises(InvalidInput, match="levels deep"):
        metadata_to_struct(nested(depth + 1 + (kind == "wrapper"), kind))


def test_an_object_that_holds_itself_is_refused() -> None:
    loop: dict[str, object] = {}
    loop["self"] = loop
    with pytest.raises(InvalidInput, match="levels deep"):
        metadata_to_struct(loop)
