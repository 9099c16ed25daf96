"""Values of a flow as JSON and back: what JSON has, and models, data classes, enumerations and times.

A model is named by its class. Only a class that the agent has imported by itself is made again, and only a model, data
class or enumeration: a stored name can call nothing else.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

MARK = "__agentvisor__"
_SIMPLE: Mapping[str, tuple[type, Callable[[str], object]]] = {
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "uuid": (UUID, UUID),
}


def encode(value: object, path: str) -> Json:
    """The value as JSON; `InvalidInput` names the path of what cannot be kept."""
    return _encoded(value, path, ())


def decode(kept: Json) -> object:
    """What was encoded. `InvalidInput` where a class is not there any more, or does not fit."""
    match kept:
        case {"__agentvisor__": str(kind)}:
            return _made(kind, kept)
        case dict():
            return {key: decode(item) for key, item in kept.items()}
        case list():
            return [decode(item) for item in kept]
        case _:
            return kept


def _encoded(value: object, path: str, above: tuple[int, ...]) -> Json:
    match value:
        case Enum():
            return {MARK: "enum", "of": _name(type(value), path), "value": _encoded(value.value, path, above)}
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise InvalidInput(f"{path} is {value!r}, which JSON does not have", path=path)
            return value
        case _:
            if id(value) in above:
                raise InvalidInput(f"{path} contains itself", path=path)
            return _of_parts(value, path, (*above, id(value)))


def _of_parts(value: object, path: str, here: tuple[int, ...]) -> Json:
    match value:
        case list() | tuple():
            items = cast("list[object]", value)
            return [_encoded(item, f"{path}[{index}]", here) for index, item in enumerate(items)]
        case dict():
            return _object(cast("dict[object, object]", value), path, here)
        case BaseModel():
            # Field by field, and not by what the fields declare: an output is declared as any model.
            return {MARK: "model", "of": _name(type(value), path), "fields": _object(dict(value), path, here)}
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            declared = {one.name: cast("object", getattr(value, one.name)) for one in dataclasses.fields(value)}
            return {MARK: "data", "of": _name(type(value), path), "fields": _object(declared, path, here)}
        case _:
            for kind, (cls, _) in _SIMPLE.items():
                if isinstance(value, cls):
                    return {MARK: kind, "value": str(value) if cls is UUID else cast("date", value).isoformat()}
    what = type(value).__qualname__
    raise InvalidInput(
        f"{path} is a {what}: what a flow keeps and its methods return is JSON, pydantic models and data classes",
        path=path,
    )


def _object(value: Mapping[object, object] | Mapping[str, object], path: str, here: tuple[int, ...]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str) or key == MARK:
            raise InvalidInput(f"{path}: the key {key!r} cannot be kept: keys are strings", path=path)
        found[key] = _encoded(item, f"{path}[{key!r}]", here)
    return found


def _name(cls: type, path: str) -> str:
    name = f"{cls.__module__}:{cls.__qualname__}"
    if _found(name) is not cls:
        raise InvalidInput(
            f"{path} is a {cls.__qualname__}, which cannot be found again by that name: define it at the top of a file",
            path=path,
        )
    return name


def _found(name: str) -> object:
    module, _, path = name.partition(":")
    found: object = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _made(kind: str, kept: Mapping[str, Json]) -> object:
    if kind in _SIMPLE:
        return _SIMPLE[kind][1](str(kept["value"]))
    cls = _found(str(kept["of"]))
    try:
        match kind, cls:
            case "enum", type() if issubclass(cls, Enum):
                return cls(decode(kept["value"]))
            case "model", type() if issubclass(cls, BaseModel):
                return cls.model_construct(None, **cast("dict[str, Any]", decode(kept["fields"])))
            case "data", type() if dataclasses.is_dataclass(cls):
                return _data(cls, cast("dict[str, object]", decode(kept["fields"])))
            case _:
                raise TypeError("there is no such class")
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"a value of {kept['of']} that was kept does not fit the present code: {error}; give the thread a run "
            "with an input to begin anew",
        ) from error


def _data(cls: type, fields: Mapping[str, object]) -> object:
    # Not by calling it: that would also do what its __post_init__ did the first time.
    made = cast("object", object.__new__(cls))
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
