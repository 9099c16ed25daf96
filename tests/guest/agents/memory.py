"""Agents that use memory: each in a way of its own, and none for ever."""

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

MIB = 1 << 20
STEP = 8 * MIB


def grow(most: int) -> None:
    """Use ever more, step by step."""
    kept = []
    for _ in range(0, most, STEP):
        kept.append(b"x" * STEP)
        time.sleep(0.001)
    time.sleep(20)


def heap(given: int) -> None:
    grow(given * MIB)


def child(given: int) -> None:
    """In a process of its own."""
    code = f"import memory; memory.grow({given * MIB})"
    subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parent)


def shared(given: int) -> None:
    """In memory that no limit of a process' own counts."""
    with mmap.mmap(-1, given * MIB) as memory:
        for at in range(0, given * MIB, mmap.PAGESIZE):
            memory[at] = 1
        time.sleep(20)


def together(given: int) -> str:
    """Four processes that share the same pages: each has them all, together they are there once."""
    kept = b"x" * (given * MIB)
    children = []
    for _ in range(3):
        if (pid := os.fork()) == 0:
            time.sleep(0.5)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    return f"kept {len(kept) // MIB}"


def in_cgroup(given: str) -> None:
    """As an administrator's limit does it: the kernel ends the process."""
    (Path(given) / "cgroup.procs").write_text(str(os.getpid()))
    grow(512 * MIB)
