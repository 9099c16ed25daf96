"""Renders typed values of LangGraph's serde as plain JSON, whoever wrote them: class names are read, classes never are.

The layout is that of `langgraph.checkpoint.serde.jsonplus`; an object comes out as the fields it was stored with, and a
value of the standard library as text or number. What cannot be shown is a marker that says so:
`{"__type__": "encrypted" | "corrupt" | "too_deep" | "extension" | "unavailable" | "unknown", ...}`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import cast

from agentvisor.core.errors import Corrupt
from agentvisor.host.render_msgpack import Plain, Reader, TooDeep
from agentvisor.host.render_numpy import numbers

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def render(type_: str, data: bytes) -> Json:
    """The value as JSON. Never fails: what cannot be read becomes a marker in its place."""
    try:
        return _render(type_, data)
    except (TooDeep, RecursionError) as error:
        return _marker("too_deep", type=type_, size=len(data), error=str(error))
    except Corrupt as error:
        return _marker("corrupt", type=type_, size=len(data), error=error.message)


def _render(type_: str, data: bytes) -> Json:
    match type_:
        case "null" | "empty":
            return None
        case "bytes" | "bytearray":
            return _base64(data)
        case "msgpack":
            return jsonable(Reader(memoryview(data), _extension, _key).whole())
        case "json":
            return _json(data)
        case "agentvisor/too_large" if data.isdigit():
            return _marker("too_large", type=type_, size=int(data))
        case "agentvisor/corrupt" | "agentvisor/unavailable":
            return _marker(type_.removeprefix("agentvisor/"), error=data.decode(errors="replace"))
        case _ if "+" in type_:  # EncryptedSerializer: "msgpack+aes"
            return _marker("encrypted", type=type_, size=len(data))
        case _:
            return _marker("unknown", type=type_, size=len(data))


def jsonable(value: Plain) -> Json:
    """Plain values as JSON has them: bytes as base64, a number that is not finite as null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return _base64(value)
        case list():
            return [jsonable(one) for one in value]
        case dict():
            return {name: jsonable(one) for name, one in value.items()}
        case _:
            return value


def _json(data: bytes) -> Json:
    try:
        return jsonable(cast("Plain", json.loads(data)))
    except ValueError as error:
        raise Corrupt(f"not JSON: {error}") from None


def _marker(what: str, **facts: Json) -> dict[str, Json]:
    return {"__type__": what, **facts}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _key(key: Plain) -> str:
    match key:
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
        case bytes():
            return _base64(key)
        case str():
            return key
        case _:
            return json.dumps(jsonable(key))


# --- extensions ------------------------------------------------------------------------------------------------------


def _extension(content: Reader, code: int) -> Plain:
    match code:
        case (
            0 | 1 | 2 | 3 | 4 | 5
        ):  # constructors with one, positional and keyword arguments, a method, pydantic 1 and 2
            return _object(content)
        case 6:
            return numbers(content.whole())
        case 7:  # the snapshot of a delta channel
            return content.whole()
        case _:
            return {"__type__": "extension", "code": code, "size": content.end}


def _object(content: Reader) -> Plain:
    """(module, class, value, ...): what a constructor or validator would be given, or its plain form."""
    match content.whole():
        case [str(module), str(name), value, *_]:
            shape = _SHAPES.get((module, name))
            try:
                return value if shape is None else shape(value)
            except (TypeError, ValueError, LookupError):
                # Not what that class writes: shown as it stands.
                return value
        case _:
            raise Corrupt("an object's extension does not hold module, class and value")


def _uuid(value: Plain) -> Plain:
    text = _text(value)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])) if len(text) == 32 else text


def _path(value: Plain) -> Plain:
    return _joined(value, "/")


def _windows_path(value: Plain) -> Plain:
    return _joined(value, "\\")


def _joined(value: Plain, separator: str) -> Plain:
    """Parts of a path; the first ends with the separator where it is a root."""
    parts = [_text(one) for one in _items(value)] or ["."]
    root = parts.pop(0) if parts[0].endswith(separator) else ""
    return root + separator.join(parts)


def _date(value: Plain) -> Plain:
    year, month, day = (_int(one) for one in _items(value))
    return f"{year:04}-{month:02}-{day:02}"


def _time(value: Plain) -> Plain:
    fields = _fields(value)
    hour, minute, second, micro = (_int(fields[name]) for name in ("hour", "minute", "second", "microsecond"))
    zone = fields.get("tzinfo")
    fraction = f".{micro:06}" if micro else ""
    return f"{hour:02}:{minute:02}:{second:02}{fraction}{zone if isinstance(zone, str) and zone[:1] in '+-' else ''}"


def _seconds(value: Plain) -> Plain:
    days, seconds, micros = (_int(one) for one in _items(value))
    return days * 86_400 + seconds + micros / 1_000_000


def _zone(value: Plain) -> Plain:
    """A fixed offset; its name where it has one."""
    offset, *name = _items(value)
    if name:
        return _text(name[0])
    if not isinstance(offset, int | float):
        return offset
    sign, minutes = "-" if offset < 0 else "+", int(abs(offset)) // 60
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _pattern(value: Plain) -> Plain:
    return _items(value)[0]


def _send(value: Plain) -> Plain:
    node, arg, *timeout = _items(value)
    return {"node": node, "arg": arg, **({"timeout": timeout[0]} if timeout else {})}


def _interrupt(value: Plain) -> Plain:
    fields = _fields(value)
    return {name: one for name, one in fields.items() if not (name == "response_schema" and one is None)}


def _secret(value: Plain) -> Plain:
    """The serde stores a pydantic secret in the clear; a page must not show it."""
    return "**********" if value else ""


def _items(value: Plain) -> list[Plain]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _fields(value: Plain) -> dict[str, Plain]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _text(value: Plain) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _int(value: Plain) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


_SHAPES: dict[tuple[str, str], Callable[[Plain], Plain]] = {
    ("uuid", "UUID"): _uuid,
    ("datetime", "date"): _date,
    ("datetime", "time"): _time,
    ("datetime", "timedelta"): _seconds,
    ("datetime", "timezone"): _zone,
    ("re", "compile"): _pattern,
    ("langgraph.types", "Send"): _send,
    ("langgraph.types", "Interrupt"): _interrupt,
    ("pydantic.types", "SecretStr"): _secret,
    ("pydantic.types", "SecretBytes"): _secret,
    ("pydantic.v1.types", "SecretStr"): _secret,
    ("pydantic.v1.types", "SecretBytes"): _secret,
    ("pathlib", "PosixPath"): _path,
    ("pathlib", "WindowsPath"): _windows_path,
    # Python 3.13
    ("pathlib._local", "PosixPath"): _path,
    ("pathlib._local", "WindowsPath"): _windows_path,
}
