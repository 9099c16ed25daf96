"""A number in a body is a number: true is none, nor is a text of digits, whatever body and field it is in."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agentvisor.host.http import (
    agent_protocol,
    bodies_assistants,
    bodies_crons,
    bodies_state,
    bodies_threads,
    interrupts,
    run_create,
    state_update,
    store,
)

MODULES = (agent_protocol, bodies_assistants, bodies_crons, bodies_state, bodies_threads, interrupts, run_create,
           state_update, store)  # fmt: skip


def numbers() -> Iterator[tuple[type[BaseModel], str]]:
    """Every field of every body that takes numbers and not anything."""
    for body in {one for module in MODULES for _, one in inspect.getmembers(module, inspect.isclass)}:
        if issubclass(body, BaseModel) and body is not BaseModel:
            for name, schema in body.model_json_schema()["properties"].items():
                kinds = {one.get("type") for one in (schema, *schema.get("anyOf", ()))}
                if kinds & {"integer", "number"}:
                    yield body, name


FIELDS = sorted(numbers(), key=lambda one: (one[0].__name__, one[1]))


def test_there_are_such_fields() -> None:
    assert {("RunCreate", "after_seconds"), ("ThreadSearch", "limit"), ("ItemPut", "ttl"), ("TimeToLive", "ttl")} <= {
        (body.__name__, name) for body, name in FIELDS
    }


@pytest.mark.parametrize("value", [True, "1"])
@pytest.mark.parametrize("body, name", FIELDS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_what_is_no_number_is_refused(body: type[BaseModel], name: str, value: Any) -> None:
    assert name in _refused(body, {name: value})


@pytest.mark.parametrize("body, name", FIELDS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_number_is_taken(body: type[BaseModel], name: str) -> None:
    assert name not in _refused(body, {name: 1})


def _refused(body: type[BaseModel], given: dict[str, Any]) -> set[int | str]:
    """The fields that are wrong, or missing."""
    try:
        body.model_validate(given)
    except ValidationError as error:
        return {one["loc"][0] for one in error.errors()}
    return set()
