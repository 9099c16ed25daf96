"""The mark of a guest's processes: an unused resource limit, which a child inherits whatever its environment is.

A process that loses its parents and its environment carries it still, through fork, exec and sessions of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import resource
import sys
from pathlib import Path

_RLIMIT_LOCKS = 10
"""No Linux since 2.4.25 looks at it (setrlimit(2)). Python has no name for it."""

_LINE = b"Max file locks"


def mark_of(guest_id: str) -> int:
    """The mark of a guest: 56 bits of its id."""
    return int.from_bytes(hashlib.sha256(guest_id.encode()).digest()[:7])


def bear_mark(guest_id: str) -> None:
    """Mark this process and all that will descend from it; does nothing where the system cannot."""
    if sys.platform != "linux":
        return
    # Not the hard limit: a host may run in another host's guest, and its guests bear its marks.
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(_RLIMIT_LOCKS)
        resource.setrlimit(_RLIMIT_LOCKS, (mark_of(guest_id), hard))


def marked(pid: int) -> int | None:
    """The mark of a process, if it has one."""
    try:
        limits = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError:
        return None
    _, found, rest = limits.partition(_LINE)
    soft = rest.split(maxsplit=1)[0] if found else b""
    return int(soft) if soft.isdigit() else None
