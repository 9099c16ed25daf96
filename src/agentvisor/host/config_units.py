"""Durations and sizes as people write them in a configuration: 30m, 500ms, 2MiB, or plain seconds and bytes."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

KIB = 1024
MIB = 1024 * KIB

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_DURATION_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_DURATION = re.compile(rf"(?:{_DURATION_PART}\s*)+")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_LONGEST = timedelta(days=3660)
"""Ten years, as of a thread's `ttl`. Temporal's own counts end at 292: beyond them every run would fail."""

_LARGEST = 2**50
"""A pebibyte: more than any disk of a host, and less than what 64 bits hold."""


def parse_duration(value: object) -> timedelta:
    """'30m', '1h30m', '500ms', a number of seconds or a timedelta, ten years at most; `ValueError` otherwise."""
    match value:
        case timedelta():
            return value
        case bool():
            pass
        case int() | float() if value >= 0:
            return _span(value)
        case str():
            text = value.strip()
            if _NUMBER.fullmatch(text):
                return _span(float(text))
            if _DURATION.fullmatch(text):
                parts = re.findall(_DURATION_PART, text)
                return _span(sum(float(number) * _SECONDS[unit] for number, unit in parts))
        case _:
            pass
    raise ValueError(f"{value!r} is no duration: write 30m, 2s, 500ms, 1h30m, or a number of seconds")


def _span(seconds: float) -> timedelta:
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"this is too long: write {format_duration(_LONGEST)} (ten years) at most")
    return timedelta(seconds=seconds)


def parse_size(value: object) -> int:
    """'2MiB', '1.5 MB', or a number of bytes; `ValueError` otherwise."""
    match value:
        case bool():
            pass
        case int() if value >= 0:
            return _bytes(value)
        case str():
            if (found := _SIZE.fullmatch(value.strip())) and found[2] in _BYTES:
                return _bytes(int(float(found[1]) * _BYTES[found[2]]))
        case _:
            pass
    raise ValueError(f"{value!r} is no size: write 2MiB, 500KB, or a number of bytes")


def _bytes(size: int) -> int:
    if size > _LARGEST:
        raise ValueError(f"this is too large: write {format_size(_LARGEST)} at most")
    return size


def format_duration(value: timedelta) -> str:
    """The shortest form that `parse_duration` reads back."""
    seconds = value.total_seconds()
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{seconds * 1000:g}ms" if seconds else "0s"


def format_size(value: int) -> str:
    """A size as `parse_size` reads it back."""
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % _BYTES[unit] == 0:
            return f"{value // _BYTES[unit]}{unit}"
    return str(value)


def _lasting(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("must be more than 0 seconds")
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
"""A span of time, not negative."""

LastingDuration = Annotated[Duration, AfterValidator(_lasting)]
"""A span of time in which something can happen."""

Size = Annotated[int, BeforeValidator(parse_size)]
"""A number of bytes, not negative."""
