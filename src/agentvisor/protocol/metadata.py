"""JSON objects as a protobuf Struct and back, with integers and floats kept apart; what is not JSON is refused by name.

A Struct holds every number as a float. An integral number therefore reads as an int, and a float that is integral is
wrapped: `{"@agentvisor:float": 3}`. A user's own object that looks like a wrapper is itself wrapped as
`{"@agentvisor:object": {...}}`, so that it comes back as what it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from google.protobuf.struct_pb2 import ListValue, Struct, Value

from agentvisor.core.errors import InvalidInput

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_DEPTH = 20
"""Objects and lists inside one another. Protobuf reads 100 levels of messages, and an object takes three of them."""

MAX_INTEGER = 2**53
"""Beyond it, a float does not hold every integer."""

_RESERVED = "@agentvisor:"
_FLOAT = "@agentvisor:float"
_OBJECT = "@agentvisor:object"


def metadata_to_struct(data: Mapping[str, object], *, what: str = "metadata") -> Struct:
    """Return `data` as a Struct; tuples become lists.

    Raises `InvalidInput` that names the path of the first value that is not JSON, such as `metadata["handler"]`.
    """
    struct = Struct()
    _write_object(struct, cast("Mapping[object, object]", data), what, 1)
    return struct


def metadata_from_struct(struct: Struct) -> dict[str, Json]:
    """Return what `metadata_to_struct` was given."""
    return _read_object(struct)


def metadata_from_bytes(data: bytes) -> dict[str, Json]:
    """The same from an encoded Struct, as core's records hold it."""
    return metadata_from_struct(Struct.FromString(data))


def whole_float(value: Value) -> float | None:
    """The float that a wrapper holds; None where it is none."""
    fields = value.struct_value.fields
    return fields[_FLOAT].number_value if len(fields) == 1 and _FLOAT in fields else None


def _write_object(struct: Struct, data: Mapping[object, object], path: str, depth: int) -> None:
    if _is_reserved(data):
        struct, depth = struct.fields[_OBJECT].struct_value, depth + 1
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{path} is nested more than {MAX_DEPTH} levels deep", path=path)
    fields = struct.fields
    if not data:
        # Without fields, an object would not be there at all.
        struct.SetInParent()
    for key, value in data.items():
        inner = f"{path}[{key!r}]"
        if not isinstance(key, str):
            raise InvalidInput(f"{inner}: a key must be a string, not {type(key).__name__}", path=inner)
        _check_text(key, inner)
        _write(fields[key], value, inner, depth)


def _write(target: Value, value: object, path: str, depth: int) -> None:
    match value:
        case None:
            target.null_value = 0  # pyright: ignore[reportAttributeAccessIssue]
        case bool():
            target.bool_value = value
        case str():
            _check_text(value, path)
            target.string_value = value
        case int():
            if abs(value) > MAX_INTEGER:
                raise InvalidInput(
                    f"{path} is an integer beyond 2^53, which would lose digits: store it as a string", path=path
                )
            target.number_value = value
        case float():
            _write_float(target, value, path)
        case Mapping():
            _write_object(target.struct_value, cast("Mapping[object, object]", value), path, depth + 1)
        case list() | tuple():
            _write_list(target.list_value, cast("Sequence[object]", value), path, depth + 1)
        case _:
            raise InvalidInput(f"{path} is not JSON: {type(value).__name__}", path=path)


def _write_float(target: Value, value: float, path: str) -> None:
    if not math.isfinite(value):
        raise InvalidInput(f"{path} is {value}, which JSON does not have", path=path)
    if value.is_integer():
        target.struct_value.fields[_FLOAT].number_value = value
    else:
        target.number_value = value


def _write_list(target: ListValue, items: Sequence[object], path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{path} is nested more than {MAX_DEPTH} levels deep", path=path)
    if not items:
        target.SetInParent()
    for index, item in enumerate(items):
        _write(target.values.add(), item, f"{path}[{index}]", depth)


def _check_text(text: str, path: str) -> None:
    # Half a surrogate pair is a str in Python, and nothing in UTF-8.
    if not text.isascii() and not _encodes(text):
        raise InvalidInput(f"{path} is not valid Unicode text", path=path)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_reserved(data: Mapping[object, object]) -> bool:
    if len(data) != 1:
        return False
    (key,) = data
    return isinstance(key, str) and key.startswith(_RESERVED)


def _read_object(struct: Struct) -> dict[str, Json]:
    fields = struct.fields
    if len(fields) == 1 and _OBJECT in fields:
        fields = fields[_OBJECT].struct_value.fields
    return {key: _read(value) for key, value in fields.items()}


def _read(value: Value) -> Json:
    match value.WhichOneof("kind"):
        case "bool_value":
            return value.bool_value
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "string_value":
            return value.string_value
        case "struct_value":
            number = whole_float(value)
            return _read_object(value.struct_value) if number is None else number
        case "list_value":
            return [_read(item) for item in value.list_value.values]
        case _:
            return None
