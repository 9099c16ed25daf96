"""What LangGraph's serde stores is shown as the LangGraph server shows it, and nothing that is stored can hurt."""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import math
import pathlib
import re
import struct
import sys
import uuid
import zoneinfo
from collections import deque
from typing import Any, NamedTuple

import ormsgpack
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Send

from agentvisor.host.render_msgpack import MAX_DEPTH
from agentvisor.host.render_typed import render

SERDE = JsonPlusSerializer()


def shown(value: object) -> Any:
    return render(*SERDE.dumps_typed(value))


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: "Point | None" = None


class Pair(NamedTuple):
    left: int
    right: str


class Account(pydantic.BaseModel):
    owner: str
    opened: dt.date
    key: pydantic.SecretStr


MESSAGES: list[AnyMessage] = [
    HumanMessage("hi", id="1", name="ada"),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
    SystemMessage("be kind"),
    AIMessage(
        "",
        id="2",
        tool_calls=[{"name": "add", "args": {"a": 1, "b": [None, 2.5]}, "id": "call", "type": "tool_call"}],
        usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        response_metadata={"model_name": "scripted", "finish_reason": "tool_calls"},
    ),
    AIMessageChunk("par", id="3"),
    ToolMessage("3", tool_call_id="call", artifact={"raw": 3}, status="error"),
    ChatMessage("x", role="critic"),
    RemoveMessage(id="1"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__class__.__name__)
def test_a_message_is_shown_with_all_fields_of_its_dump(message: AnyMessage) -> None:
    assert shown({"messages": [message]}) == {"messages": [json.loads(json.dumps(message.model_dump()))]}


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, None),
        (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
        (bytearray(b"ab"), "YWI="),
        ({"raw": b"ab"}, {"raw": "YWI="}),
        (uuid.UUID("12345678-1234-5678-1234-567812345678"), "12345678-1234-5678-1234-567812345678"),
        (decimal.Decimal("1.10"), "1.10"),
        (dt.datetime(2026, 11, 30, 8, 5, tzinfo=dt.UTC), "2026-11-30T08:05:00+00:00"),
        (dt.datetime(2026, 11, 30, 8, 5, 1, 7), "2026-11-30T08:05:01.000007"),  # noqa: DTZ001
        (dt.date(2026, 11, 3), "2026-11-03"),
        (dt.time(8, 5), "08:05:00"),
        (dt.time(8, 5, 1, 20, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))), "08:05:01.000020-03:30"),
        (dt.timedelta(days=1, seconds=2, microseconds=500_000), 86402.5),
        (dt.UTC, "+00:00"),
        (dt.timezone(dt.timedelta(hours=2), "CEST"), "CEST"),
        (zoneinfo.ZoneInfo("Europe/Berlin"), "Europe/Berlin"),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        (ipaddress.ip_network("fe80::/10"), "fe80::/10"),
        (re.compile("a+", re.IGNORECASE), "a+"),
        (pathlib.Path("/tmp/a"), "/tmp/a"),
        (pathlib.Path("a/b"), "a/b"),
        (pathlib.Path(), "."),
        ((1, 2), [1, 2]),
        ({7}, [7]),
        (frozenset({7}), [7]),
        (deque([1, 2]), [1, 2]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Pair(1, "r"), {"left": 1, "right": "r"}),
        (ValueError("boom!"), "ValueError('boom!')"),
        (Interrupt("why?", id="i1"), {"value": "why?", "id": "i1"}),
        (Send("node", {"a": Colour.RED}), {"node": "node", "arg": {"a": "red"}}),
        (Command(goto="x", update={"a": 1}), {"graph": None, "update": {"a": 1}, "resume": None, "goto": "x"}),
        (_DeltaSnapshot([1, {2}]), [1, [2]]),
        ({2: "a", None: 0, True: 1, 1.5: 2}, {"2": "a", "null": 0, "true": 1, "1.5": 2}),
        ({(1, "a"): 2}, {'[1, "a"]': 2}),
        ([math.nan, math.inf, 1.5], [None, None, 1.5]),
        (["\x00", "\ud800", 2**63, -(2**63)], ["\x00", "?", 2**63, -(2**63)]),
    ],
    ids=repr,
)
def test_a_value_is_shown_as_plain_json(value: object, expected: object) -> None:
    assert shown(value) == expected


def test_a_model_is_shown_by_its_fields_and_its_secret_is_not() -> None:
    account = Account(owner="ada", opened=dt.date(2020, 1, 1), key=pydantic.SecretStr("hunter2"))
    assert shown(account) == {"owner": "ada", "opened": "2020-01-01", "key": "**********"}


def test_a_document_is_shown_as_its_fields() -> None:
    document = Document("text", metadata={"n": 1})
    assert shown(document) == {"id": None, "metadata": {"n": 1}, "page_content": "text", "type": "Document"}


def test_a_string_key_that_a_number_took_keeps_its_value() -> None:
    packed = ormsgpack.packb({"1": "text", 1: "number"}, option=ormsgpack.OPT_NON_STR_KEYS)
    assert render("msgpack", packed) == {"1": "text", "1 (int)": "number"}


@pytest.mark.parametrize(
    "shape, order, expected",
    [
        ((2, 3), "C", [[0, 1, 2], [3, 4, 5]]),
        ((2, 3), "F", [[0, 2, 4], [1, 3, 5]]),
        ((6,), "C", [0, 1, 2, 3, 4, 5]),
        ((1, 1, 6), "C", [[[0, 1, 2, 3, 4, 5]]]),
    ],
)
def test_an_array_is_shown_as_nested_lists(shape: tuple[int, ...], order: str, expected: object) -> None:
    assert render("msgpack", array("<i4", shape, order, struct.pack("<6i", *range(6)))) == expected


@pytest.mark.parametrize(
    "dtype, shape, data, expected",
    [
        ("<f8", (), struct.pack("<d", math.nan), None),
        (">f4", (1,), struct.pack(">f", 0.5), [0.5]),
        ("|b1", (2,), b"\x01\x00", [True, False]),
        ("<f8", (0,), b"", []),
        ("<U2", (1,), b"12345678", {"__type__": "array", "dtype": "<U2", "shape": [1], "size": 8}),
        ("<f8", (2**40, 0), b"", {"__type__": "array", "dtype": "<f8", "shape": [2**40, 0], "size": 0}),
    ],
)
def test_arrays_of_every_layout_are_shown_or_named(
    dtype: str, shape: tuple[int, ...], data: bytes, expected: Any
) -> None:
    assert render("msgpack", array(dtype, shape, "C", data)) == expected


def test_an_array_that_claims_more_than_it_holds_is_corrupt() -> None:
    assert render("msgpack", array("<f8", (2**50,), "C", b""))["__type__"] == "corrupt"


def array(dtype: str, shape: tuple[int, ...], order: str, data: bytes) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(6, ormsgpack.packb((dtype, shape, order, data))))


@pytest.mark.parametrize(
    "type_, data, expected",
    [
        ("empty", b"", None),
        ("json", b'{"a": [1, NaN]}', {"a": [1, None]}),
        ("msgpack+aes", b"12345", {"__type__": "encrypted", "type": "msgpack+aes", "size": 5}),
        ("pickle", b"\x80\x04.", {"__type__": "unknown", "type": "pickle", "size": 3}),
        ("msgpack", ormsgpack.packb([ormsgpack.Ext(99, b"ab")]), [{"__type__": "extension", "code": 99, "size": 2}]),
        ("msgpack", b"\xd6\xff\x00\x00\x00\x01", {"__type__": "extension", "code": -1, "size": 4}),
    ],
)
def test_what_cannot_be_shown_says_so(type_: str, data: bytes, expected: object) -> None:
    assert render(type_, data) == expected


@pytest.mark.parametrize(
    "type_, data",
    [
        ("msgpack", b""),
        ("msgpack", b"\xc1"),
        ("msgpack", b"\x01\x02"),
        ("msgpack", b"\xa5ab"),
        ("msgpack", b"\xa2\xff\xfe"),
        ("msgpack", b"\xdd\xff\xff\xff\xff"),
        ("msgpack", b"\xdf\xff\xff\xff\xff\x00"),
        ("msgpack", b"\x82\xa1a\x01\xa1a\x02"),
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(5, ormsgpack.packb(["module"])))),
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(0, b"\xa5"))),
        ("json", b"{"),
        ("json", b'"\xff"'),
        ("json", b"1" * 5000),
    ],
)
def test_bytes_that_are_no_value_are_marked_corrupt(type_: str, data: bytes) -> None:
    marker = render(type_, data)
    assert isinstance(marker, dict)
    assert marker["__type__"] == "corrupt"
    assert marker["size"] == len(data)


def test_a_value_nested_as_deep_as_the_limit_is_shown_and_one_deeper_is_named() -> None:
    deep = b"\x91" * (MAX_DEPTH - 1) + b"\x90"
    json.dumps(render("msgpack", deep))
    marker = render("msgpack", b"\x91" + deep)
    assert isinstance(marker, dict)
    assert (marker["__type__"], marker["error"]) == ("too_deep", f"nested deeper than {MAX_DEPTH} levels")


def test_extensions_nested_in_extensions_end_at_the_limit() -> None:
    data = b"\xc0"
    for _ in range(MAX_DEPTH + 1):
        data = ormsgpack.packb(ormsgpack.Ext(7, data))
    assert render("msgpack", data)["__type__"] == "too_deep"


def test_json_nested_too_deeply_is_named() -> None:
    assert render("json", b"[" * 100_000)["__type__"] == "too_deep"


def test_a_key_that_comes_half_a_million_times_is_refused_at_once() -> None:
    data = b"\xdf" + (500_000).to_bytes(4, "big") + b"\xa0\xc0" * 500_000
    assert render("msgpack", data)["__type__"] == "corrupt"


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(plain)
def test_plain_values_come_out_as_they_went_in(value: object) -> None:
    assert shown(value) == value


@settings(max_examples=500)
@given(st.binary(max_size=300))
def test_any_bytes_are_shown_as_json(data: bytes) -> None:
    json.dumps(render("msgpack", data), allow_nan=False)
    json.dumps(render("json", data), allow_nan=False)


sample = SERDE.dumps_typed(
    {"messages": MESSAGES, "send": Send("n", Point(1)), "at": dt.datetime.now(dt.UTC), "n": {1.5}}
)[1]


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.integers(0, len(sample) - 1), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 40),
)
def test_a_damaged_value_is_shown_as_json(damage: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(sample)
    for position, byte in damage:
        data[position] = byte
    json.dumps(render("msgpack", bytes(data[: len(data) - cut])), allow_nan=False)


def test_rendering_imports_nothing() -> None:
    before = set(sys.modules)
    packed = ormsgpack.packb(("this.module.is.not", "There", {"a": 1}, "model_validate_json"))
    assert render("msgpack", ormsgpack.packb(ormsgpack.Ext(5, packed))) == {"a": 1}
    assert set(sys.modules) == before


def test_a_type_of_ours_that_a_guest_made_up_is_shown_and_no_error() -> None:
    assert render("agentvisor/too_large", b"many")["__type__"] == "unknown"
    assert render("agentvisor/corrupt", b"\xff")["__type__"] == "corrupt"
