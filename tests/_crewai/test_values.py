"""Values of a flow come back as they were, and what cannot is named by its path."""

import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from crewai import CrewOutput, TaskOutput
from pydantic import BaseModel

from agentvisor._crewai.values import MARK, decode, encode
from agentvisor.core.errors import InvalidInput


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    when: datetime
    colour: Colour = Colour.RED


class Outer(BaseModel):
    inner: BaseModel
    many: list[Inner] = []


@dataclass
class Noted:
    text: str
    made: int = 0

    def __post_init__(self) -> None:
        self.made += 1


NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, "text", [1, [2]], {"a": {"b": None}}, NOW, NOW.date(), UUID(int=7), Colour.RED,
        Inner(when=NOW), Outer(inner=Inner(when=NOW), many=[Inner(when=NOW)]), {"noted": Noted("x")},
    ],
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value: object) -> None:
    again = decode(json.loads(json.dumps(encode(value, "value"))))
    assert again == value
    assert type(again) is type(value)


def test_the_output_of_a_crew_keeps_its_typed_forms() -> None:
    task = TaskOutput(description="d", agent="a", raw="r", pydantic=Inner(when=NOW))
    again: Any = decode(encode(CrewOutput(raw="r", pydantic=Inner(when=NOW), tasks_output=[task]), "result"))
    assert again.pydantic == Inner(when=NOW)
    assert again.tasks_output[0].pydantic.colour is Colour.RED
    assert str(again) == str(Inner(when=NOW))


def itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Outside:
    class Inside(BaseModel):
        pass


def local() -> BaseModel:
    class Local(BaseModel):
        pass

    return Local()


@pytest.mark.parametrize(
    "value, told",
    [
        ({"a": [threading.Lock()]}, "result['a'][0] is a lock"),
        ({"a": float("nan")}, "result['a'] is nan"),
        ({1: 2}, "the key 1"),
        ({MARK: "model"}, "the key '__agentvisor__'"),
        (itself(), "result[0] contains itself"),
        (local(), "define it at the top of a file"),
        (object, "is a type"),
    ],
)
def test_what_cannot_be_kept_is_named(value: object, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode(value, "result")
    assert told in refused.value.message


def test_a_nested_class_is_found_again() -> None:
    assert isinstance(decode(encode(Outside.Inside(), "x")), Outside.Inside)


@pytest.mark.parametrize(
    "kept",
    [
        {MARK: "model", "of": "os:system", "fields": {}},
        {MARK: "enum", "of": "os:system", "value": "true"},
        {MARK: "data", "of": "subprocess:Popen", "fields": {}},
        {MARK: "model", "of": "no_such_module:Model", "fields": {}},
        {MARK: "enum", "of": f"{__name__}:Colour", "value": "green"},
    ],
)
def test_only_models_data_and_enumerations_that_are_there_are_made(kept: Any) -> None:
    with pytest.raises(InvalidInput, match="does not fit the present code"):
        decode(kept)
