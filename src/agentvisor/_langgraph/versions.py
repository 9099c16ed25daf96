"""Versions of channels: greater as text with every change, and never the same on two branches of a thread."""

from __future__ import annotations

import secrets

_DIGITS = 8
_RANDOM_BYTES = 5


def next_version(current: str | float | None) -> str | int | float:
    """The version after `current`, which another saver may have made; None before a thread's first."""
    match current:
        case None:
            return _version(1, _DIGITS)
        case str():
            count = current.partition(".")[0]
            return _version(int(count) + 1, max(_DIGITS, len(count)))
        case _:
            # A thread whose versions are numbers keeps numbers: they are compared with each other.
            return current + 1


def _version(count: int, digits: int) -> str:
    # From the system's source: a seeded `random`, or one that was forked, would repeat itself.
    return f"{count:0{digits}}.{secrets.token_hex(_RANDOM_BYTES)}"
