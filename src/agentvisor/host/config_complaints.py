"""What is wrong with values of the configuration, in words: which key, what it must be, where it was set."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agentvisor.host.config_origin import Origin
from agentvisor.host.config_settings import SETTINGS, variable_of
from agentvisor.host.config_sources import did_you_mean

_WORDS = {
    "string_type": "must be text: write the value in quotes",
    "missing": "is needed",
    "list_type": "must be a list",
    "dict_type": "must be a table of names and values",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
}
"""Pydantic's kinds of errors that people make often, in our words."""


def complaints(error: ValidationError, origins: Mapping[str, Origin], model: type[BaseModel]) -> Iterator[str]:
    """A line for each value that is not allowed; none of them shows a secret."""
    for problem in error.errors(include_url=False, include_context=False):
        steps = [str(part) for part in problem["loc"] if part != "[key]"]
        path = ".".join(steps)
        origin = next((origins[known] for known in _upwards(path) if known in origins), None)
        variable = f" ({variable_of(path)})" if path in SETTINGS and origin is None else ""
        where = f" (set in {origin})" if origin else ""
        key = f"{path}{variable}: " if path else ""
        yield f"{key}{_said(problem, steps, model)}{where}"


def _said(problem: ErrorDetails, steps: list[str], model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"there is no such key{did_you_mean(_siblings(steps, model))}"
    return _WORDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))


def _siblings(steps: list[str], model: type[BaseModel]) -> list[str]:
    """The nearest of the keys that may stand where an unknown one does."""
    found: type[BaseModel] | None = model
    for step in steps[:-1]:
        field = None if found is None else found.model_fields.get(step)
        found = found if field is None else _model_in(field.annotation)
    return difflib.get_close_matches(steps[-1], found.model_fields, n=1) if found is not None else []


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model of a section, or of what a list or a table holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
