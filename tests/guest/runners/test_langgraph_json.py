"""Whatever a graph streams becomes JSON, as LangGraph's own server shows it."""

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import pydantic
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Interrupt

from agentvisor.guest.runners.langgraph_json import to_json


class Colour(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str
    at: dt.datetime


@dataclasses.dataclass
class Point:
    x: int
    inner: Any = None


class Pair(NamedTuple):
    left: int
    right: int


NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "value, expected",
    [
        ({"a": [1, 2.5, None, True]}, {"a": [1, 2.5, None, True]}),
        (Model(name="m", at=NOON), {"name": "m", "at": "2026-11-30T12:00:00+00:00"}),
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2, "inner": None}}),
        (Interrupt(value={"q": 1}, id="i"), {"value": {"q": 1}, "id": "i"}),
        (ValueError("no"), {"error": "ValueError", "message": "no"}),
        ([{3}, deque([4]), (5,), Pair(6, 7)], [[3], [4], [5], [6, 7]]),
        ([b"\x00\xff", Colour.RED, decimal.Decimal("1.10"), Path("/x")], ["AP8=", "red", "1.10", "/x"]),
        ([uuid.UUID(int=1), NOON, dt.timedelta(minutes=1)], [str(uuid.UUID(int=1)), NOON.isoformat(), 60.0]),
        ({1: "one", 2.5: "two", None: "three"}, {"1": "one", "2.5": "two", "null": "three"}),
        (float("nan"), None),
        # What orjson does not take.
        ([2**80, {"x": float("inf")}], [2**80, {"x": None}]),
        ({(1, 2): Point(3)}, {"(1, 2)": {"x": 3, "inner": None}}),
    ],
)
def test_values_are_shown(value: Any, expected: Any) -> None:
    assert json.loads(to_json(value)) == expected


def test_messages_are_shown_with_type_content_and_id() -> None:
    shown = json.loads(to_json([HumanMessage("hi", id="1"), AIMessage("", id="2", tool_calls=[call()])]))
    assert [(one["type"], one["content"], one["id"]) for one in shown] == [("human", "hi", "1"), ("ai", "", "2")]
    assert shown[1]["tool_calls"] == [{**call(), "type": "tool_call"}]


def call() -> Any:
    return {"name": "search", "args": {"q": "x"}, "id": "c1"}


def test_what_has_no_json_is_shown_as_text() -> None:
    shown = json.loads(to_json({"f": object(), "half": "a\ud83d", "t": Model}))
    assert shown["f"].startswith("<object object at")
    assert shown["half"] == "a\ud83d"
    assert "Model" in shown["t"]


def test_great_depth_is_cut_not_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert b'"..."' in to_json(deep)
