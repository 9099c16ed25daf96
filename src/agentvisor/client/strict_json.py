"""Values as JSON and nothing else: what is not JSON is refused by its path."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import cast

from agentvisor.core.errors import InvalidInput

MAX_DEPTH = 100
"""Objects and lists inside one another."""


def dump(value: object, what: str) -> bytes:
    """Encode; tuples become lists. `InvalidInput` names the path of the first value that is not JSON."""
    _check(value, what, 0)
    return json.dumps(value, separators=(",", ":")).encode()


def _check(value: object, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{path[:200]} is nested more than {MAX_DEPTH} levels deep", path=path[:200])
    match value:
        case None | bool() | str() | int():
            return
        case float():
            if not math.isfinite(value):
                raise InvalidInput(f"{path} is {value}, which JSON does not have", path=path)
        case dict():
            for key, item in cast("Mapping[object, object]", value).items():
                if not isinstance(key, str):
                    raise InvalidInput(f"{path}: the key {key!r} is a {_kind(key)}: keys are strings", path=path)
                _check(item, f"{path}[{key!r}]", depth + 1)
        case list() | tuple():
            for index, item in enumerate(cast("list[object]", value)):
                _check(item, f"{path}[{index}]", depth + 1)
        case _:
            raise InvalidInput(f"{path} is not JSON: {_kind(value)}", path=path)


def _kind(value: object) -> str:
    return type(value).__qualname__
