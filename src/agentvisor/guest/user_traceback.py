"""An error as the user should read it: the traceback begins in their file, not in what called it."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import NamedTuple

import agentvisor

_OURS = str(Path(agentvisor.__file__).parent)
_LIBRARIES = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")))


MAX_BYTES = 16_000
"""Of a message and of a traceback: what a journal keeps of each."""

_HEAD = 3 * MAX_BYTES // 4
"""What a text that is too long keeps of its beginning; the rest is of its end."""


class UserTraceback(NamedTuple):
    """What an Outcome says of an error."""

    error_type: str
    message: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> UserTraceback:
        """Describe an error, whatever it is. `message` is its own text, or its type where it has none."""
        name = type(error).__name__
        return cls(readable(name), readable(_text(error) or name), readable(_traceback(error)))


def readable(text: str) -> str:
    """The text as a protobuf string can carry it: without lone surrogates, and without its middle where it is long."""
    # Not its own `encode`: a subclass of str may have any.
    data = str.encode(text, "utf-8", "backslashreplace")
    if len(data) <= MAX_BYTES:
        return data.decode()
    gap = f" [... of {len(data)} bytes ...] "
    tail = MAX_BYTES - _HEAD - len(gap)
    return data[:_HEAD].decode(errors="ignore") + gap + data[-tail:].decode(errors="ignore")


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:  # noqa: BLE001 (user code; what it raises must not hide the error itself)
        return f"its text is not known: __str__ raised {type(second).__name__}"


def _traceback(error: BaseException) -> str:
    try:
        told = traceback.TracebackException.from_exception(error, compact=True)
        _trim(told, set())
        return "".join(told.format())
    except Exception as second:  # noqa: BLE001 (as above: a chain of a thousand causes, a __str__ of a cause)
        return f"{type(error).__name__}: its traceback is not known: {type(second).__name__}\n"


def _trim(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    frames = list(told.stack)
    users = next((index for index, frame in enumerate(frames) if _is_users(frame.filename)), None)
    if users is None:
        # An error inside a library that user code is not below: all but our own frames.
        users = next((index for index, frame in enumerate(frames) if not _is_ours(frame.filename)), len(frames))
    told.stack[:] = frames[users:]
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _trim(other, seen)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen "))


def _is_users(filename: str) -> bool:
    # An agent may itself live in site-packages; `_trim` then has its second rule.
    return not filename.startswith((*_LIBRARIES, "<frozen ", _OURS))
