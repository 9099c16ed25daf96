"""Finds and ends what a guest left alive when its supervisor was killed: by the guest's id in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

WATCH_SECONDS = 0.5
"""The zygote sees its supervisor die and ends its agents, descendants first; only after this it is helped."""

DEADLINE_SECONDS = 3.0
PAUSE_SECONDS = 0.02


def end_leftovers(guest_id: str) -> None:
    """Return when no process carries this guest's id any more; blocks for 3 seconds at most."""
    started = time.monotonic()
    while (left := _carriers(guest_id)) and (elapsed := time.monotonic() - started) < DEADLINE_SECONDS:
        if elapsed > WATCH_SECONDS:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def _carriers(guest_id: str) -> list[int]:
    mark = f"AGENTVISOR_GUEST_ID={guest_id}".encode()
    # A zombie's environment is empty: it counts as dead.
    return [pid for pid in _processes() if mark in _environment(pid).split(b"\0")]


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
