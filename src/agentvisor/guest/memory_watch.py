"""What an agent uses of memory with all that it started, watched from outside: an agent cannot be asked.

Resident memory is cheap to read, and counts what processes share in each of them; where it says too much, the
proportional size is asked for, which costs milliseconds and counts shared pages once.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from agentvisor.guest.family import descendants

FASTEST_GROWTH = 4 << 30
"""Bytes a second: faster, a program cannot touch new memory. It says how long nothing can have happened."""

SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 0.2
"""Seconds."""

_COST = 10
"""A look that took long is followed by a pause of so many times as long."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PSS = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


async def until_over(root: int, limit: int) -> int:
    """Return how many bytes `root` and its descendants use, once that is over `limit`; never where none can say."""
    while True:
        began = time.monotonic()
        used = family_bytes(root, over=limit)
        if used > limit:
            return used
        pause = min(max((limit - used) / FASTEST_GROWTH, SHORTEST_PAUSE), LONGEST_PAUSE)
        await asyncio.sleep(max(pause, _COST * (time.monotonic() - began)))


def family_bytes(root: int, *, over: int = 0) -> int:
    """Bytes of memory of a process and its descendants: exact where it might be `over` so many, else at most so."""
    family = [root, *descendants(root)]
    resident = _sum(family, _resident)
    return resident if resident <= over else min(resident, _sum(family, _proportional))


def _sum(family: Iterable[int], size: Callable[[int], int]) -> int:
    return sum(size(pid) for pid in family)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0  # it has ended


def _proportional(pid: int) -> int:
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return _resident(pid)  # a kernel that does not tell us this
    return int(found[1]) * 1024 if found else 0
