"""Finds and ends what a guest left alive when its supervisor was killed: by its mark or its id in the environment."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from agentvisor.protocol.guest_mark import mark_of, marked

WATCH_SECONDS = 0.5
"""The zygote sees its supervisor die and ends its agents, descendants first; only after this it is helped."""

DEADLINE_SECONDS = 3.0
PAUSE_SECONDS = 0.02

_PF_EXITING = 0x4
"""The kernel's flag of a process that ends (include/linux/sched.h)."""


def end_leftovers(guest_id: str) -> None:
    """Return when no process carries this guest's id any more; blocks for 3 seconds at most."""
    started = time.monotonic()
    while True:
        pids = _processes()
        carriers = _carriers(guest_id, pids)
        elapsed = time.monotonic() - started
        # One that ends has no environment any more, so it may be the guest's, and it is still there for a moment.
        if elapsed > DEADLINE_SECONDS or not (carriers or any(map(_is_ending, pids))):
            return
        if elapsed > WATCH_SECONDS:
            for pid in carriers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def _carriers(guest_id: str, pids: list[int]) -> list[int]:
    # An environment is easily lost (`env={}`), the mark is not; but not every system has marks.
    mark, variable = mark_of(guest_id), f"AGENTVISOR_GUEST_ID={guest_id}".encode()
    carriers = (pid for pid in pids if marked(pid) == mark or variable in _environment(pid).split(b"\0"))
    # A zombie bears the mark until its parent, which may never do it, has reaped it.
    return [pid for pid in carriers if _flags(pid) is not None]


def _is_ending(pid: int) -> bool:
    return bool((_flags(pid) or 0) & _PF_EXITING)


def _flags(pid: int) -> int | None:
    """The kernel's flags of a process; None of one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may hold anything.
    state, *_, flags = stat.rpartition(")")[2].split()[:7]
    return None if state in {"Z", "X"} else int(flags)


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    except FileNotFoundError:
        return []


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
