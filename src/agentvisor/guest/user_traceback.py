"""An error as the user should read it: the traceback begins in their file, not in what called it."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import agentvisor

_OURS = str(Path(agentvisor.__file__).parent)
_LIBRARIES = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")))


MAX_BYTES = 16_000
"""Of a message and of a traceback: what a journal keeps of each."""

MOST_MEMBERS = 10
"""Of a group of errors, those that its message tells."""


class UserTraceback(NamedTuple):
    """What an Outcome says of an error."""

    error_type: str
    message: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> UserTraceback:
        """Describe an error, whatever it is.

        `message` is its own text, or its type where it has none; of a group also those of its first members.
        """
        name = type(error).__name__
        return cls(readable(name), readable(_told(error)), readable(_traceback(error)))


def readable(text: str, most: int = MAX_BYTES) -> str:
    """The text as a protobuf string can carry it: without lone surrogates, and without its middle where it is long.

    Args:
        text: whatever it is.
        most: bytes that are kept; of a text that is too long three quarters are of its beginning.
    """
    # Not its own `encode`: a subclass of str may have any.
    data = str.encode(text, "utf-8", "backslashreplace")
    if len(data) <= most:
        return data.decode()
    gap, head = f" [... of {len(data)} bytes ...] ", 3 * most // 4
    tail = most - head - len(gap)
    return data[:head].decode(errors="ignore") + gap + data[-tail:].decode(errors="ignore")


def _told(error: BaseException) -> str:
    text = _text(error) or type(error).__name__
    if not isinstance(error, BaseExceptionGroup):
        return text
    members = list(islice(_members(cast("BaseExceptionGroup[BaseException]", error)), MOST_MEMBERS + 1))
    more = ["..."] if len(members) > MOST_MEMBERS else []
    return f"{text}: {'; '.join([*map(_in_short, members[:MOST_MEMBERS]), *more])}"


def _in_short(member: BaseException) -> str:
    name, text = type(member).__name__, readable(_text(member), MAX_BYTES // 16)
    return f"{name}: {text}" if text else name


def _members(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """What is in the group, and in the groups in it, however deep."""
    waiting: list[BaseException] = [group]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", one).exceptions))
        else:
            yield one


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
