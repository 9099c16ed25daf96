"""An error as the user should read it: the traceback begins in their file, not in what called it."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import NamedTuple

import agentvisor

_OURS = str(Path(agentvisor.__file__).parent)
_LIBRARIES = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")))


class UserTraceback(NamedTuple):
    """What an Outcome says of an error."""

    error_type: str
    message: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> UserTraceback:
        """Describe an error. `message` is the error's own text, or its type where it has none."""
        told = traceback.TracebackException.from_exception(error, compact=True)
        _trim(told, set())
        return cls(type(error).__name__, str(error) or type(error).__name__, "".join(told.format()))


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
