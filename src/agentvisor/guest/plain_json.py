"""JSON of what an agent gave out, strictly: what JSON cannot say is refused, and the place is named."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import cast

from agentvisor.core.errors import InvalidInput

MAX_DEPTH = 200
"""Objects and lists inside one another: as deep as a request to a host may be."""
_PATH_SHOWN = 200
"""Characters of a path that is too deep."""


def encode(value: object, what: str) -> bytes:
    """Return the value as JSON; pydantic models and dataclasses become objects.

    `InvalidInput` names the place of a value that JSON does not have, such as `output['steps'][2]`.
    """
    plain = _plain(value, what, ())
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _plain(value: object, path: str, above: tuple[int, ...]) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise InvalidInput(f"{path} is {value!r}, which JSON does not have", path=path)
            return value
        case _:
            return _inside(value, path, above)


def _inside(value: object, path: str, above: tuple[int, ...]) -> object:
    if id(value) in above:
        raise InvalidInput(f"{path} contains itself", path=path)
    if len(above) >= MAX_DEPTH:
        raise InvalidInput(
            f"{path[:_PATH_SHOWN]}... is nested more than {MAX_DEPTH} levels deep: give it out flatter, or as text",
            path=path[:_PATH_SHOWN],
        )
    here = (*above, id(value))
    match value:
        case list() | tuple():
            items = cast("list[object]", value)
            return [_plain(item, f"{path}[{index}]", here) for index, item in enumerate(items)]
        case Mapping():
            return {
                _key(key, path): _plain(item, f"{path}[{key!r}]", here)
                for key, item in cast("Mapping[object, object]", value).items()
            }
        case _:
            return _plain(_fields(value, path), path, here)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(f"{path} has the key {key!r}, and keys are text in JSON", path=path)
    return key


def _fields(value: object, path: str) -> object:
    """The fields of an object that declares them: LangChain's messages, LangGraph's interrupts, a user's models."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    kind = type(cast("object", value)).__qualname__
    raise InvalidInput(f"{path} is not JSON: {kind}", path=path)
