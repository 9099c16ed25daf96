"""What the tests of guests look at in /proc."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def alive(pids: Iterable[int]) -> list[int]:
    """Those that run; pid 1 may reap with a delay, so a zombie counts as dead."""
    return [pid for pid in pids if state(pid) not in {"gone", "Z", "X"}]


def tree(root: int) -> set[int]:
    """The process and all that descends from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
