"""LangGraph's stream as JSON: messages, models and dataclasses as LangGraph's own server shows them."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import Path
from typing import cast
from uuid import UUID

import orjson
from langgraph.types import Interrupt

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def to_json(value: object) -> bytes:
    """Return the value as JSON. Total: what has no JSON is shown as text, NaN as null."""
    try:
        return orjson.dumps(value, default=_simpler, option=_OPTIONS)
    except (TypeError, RecursionError):
        # Integers beyond 64 bits, half surrogate pairs, keys that are objects, great depth.
        return json.dumps(_plain(value, 0), ensure_ascii=False).encode("utf-8", "backslashreplace")


def _simpler(value: object) -> object:
    """One step towards JSON."""
    match value:
        case Interrupt():
            interrupt = cast("Interrupt[object]", value)
            shown: dict[str, object] = {"value": interrupt.value, "id": interrupt.id}
            if isinstance(interrupt.response_schema, dict):
                shown["response_schema"] = cast("object", interrupt.response_schema)
            return shown
        case BaseException():
            return {"error": type(value).__name__, "message": str(value)}
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case AbstractSet() | deque() | tuple():
            return list(cast("AbstractSet[object]", value))
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case dt.timedelta():
            return value.total_seconds()
        case Path() | decimal.Decimal():
            return str(value)
        case _:
            return _fields(value)


def _fields(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return cast("Callable[[], object]", dump)()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return repr(cast("object", value))


_MAX_DEPTH = 200


def _plain(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return "..."
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _plain(item, depth + 1) for key, item in cast("Mapping[object, object]", value).items()}
        case list() | tuple():
            return [_plain(item, depth + 1) for item in cast("list[object]", value)]
        case Enum():
            return _plain(value.value, depth + 1)
        case UUID() | dt.date() | dt.time():
            return str(value) if isinstance(value, UUID) else value.isoformat()
        case _:
            return _plain(_simpler(value), depth + 1)
