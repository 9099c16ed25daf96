"""Carries a fault out: signals to the real processes, from inside the host under test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass

import psutil

from agentvisor.testing.faults import Fault


@dataclass(slots=True)
class Victims:
    """The processes around one agent; 0 where there is none."""

    agent: int = 0
    guest: int = 0
    temporal_parent: int = 0
    """The process that keeps the Temporal server: its child is the server of the moment."""


async def carry_out(fault: Fault, victims: Victims) -> bool:
    """Do it; whether the one who was to speak next is gone, and what it said must not be passed on."""
    if fault.action == "delay":
        await asyncio.sleep(fault.seconds)
        return False
    pids = _pids(fault, victims)
    if fault.action == "kill":
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return fault.target in ("agent", "guest")
    # Whoever wakes them must not be frozen itself: this process may be one of them.
    _wake_after(fault.seconds, pids)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return False


def _pids(fault: Fault, victims: Victims) -> list[int]:
    match fault.target:
        case "host":
            return [os.getpid()]
        case "agent":
            found = [victims.agent]
        case "guest":
            # Frozen, all of it is; killed, its supervisor is, and the kernel ends the others.
            found = [victims.guest]
            if fault.action == "stop":
                found += _children(victims.guest, recursive=True)
        case "temporal":
            found = _children(victims.temporal_parent, recursive=False)
    return [pid for pid in found if pid]


def _children(pid: int, *, recursive: bool) -> list[int]:
    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=recursive)]
    except psutil.NoSuchProcess:
        return []


def _wake_after(seconds: float, pids: list[int]) -> None:
    subprocess.Popen(
        ["/bin/sh", "-c", 'sleep "$1"; shift; kill -CONT "$@"', "sh", f"{seconds:g}", *map(str, pids)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
