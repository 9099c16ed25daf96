"""What Linux tells a process of its family: who dies with whom, who is whose child, and how to end a whole tree.

On other systems the requests do nothing: there an agent's descendants are found by their process group alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

LINUX = sys.platform == "linux"


def die_with_parent(parent: int, with_signal: signal.Signals) -> None:
    """Ask for `with_signal` when the thread that made this process ends; exit now if `parent` is gone already."""
    _prctl(PR_SET_PDEATHSIG, with_signal)
    # It may have died before the request: then the kernel would send nothing.
    if os.getppid() != parent:
        sys.exit(f"process {parent}, which started this one, is gone")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can leave the family."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory and environment."""
    _prctl(PR_SET_DUMPABLE, 0)


def thread_count() -> int:
    """Count the threads of this process that the kernel knows: Python's own list lacks those of C libraries."""
    return sum(1 for _ in Path("/proc/self/task").iterdir()) if LINUX else 1


def offer_to_oom_killer() -> None:
    """When the machine's memory runs out, let the kernel take this process before its guest and its host."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def children(pid: int) -> set[int]:
    """Return the ids of the processes whose parent is `pid`, zombies included; none where the kernel does not say."""
    found: set[int] = set()
    # Each thread has a list of its own; one that ends in between has left its children to another.
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(int(child) for child in (thread / "children").read_text().split())
    return found


def is_alive(pid: int) -> bool:
    """Whether the process exists and has not ended (a zombie has)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name, in parentheses, may hold anything.
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def kill(pid: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, with_signal)


def kill_group(leader: int) -> None:
    """Kill the process group that `leader` made; call it before the leader is reaped, so that its id is its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_tree(root: int, deadline_seconds: float = 1.0) -> None:
    """Kill `root`, which adopts orphans, after everything that descends from it."""
    # Stopped, it can start nothing new and its children stay listed under it.
    kill(root, signal.SIGSTOP)
    deadline = time.monotonic() + deadline_seconds
    while (living := [pid for pid in descendants(root) if is_alive(pid)]) and time.monotonic() < deadline:
        for pid in living:
            kill(pid)
        # Each death moves its children up to the root, for the next round.
        os.sched_yield()
    kill(root)


def descendants(root: int) -> Iterator[int]:
    """The processes that `root` started, those that these started, and so on."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        for child in children(waiting.pop()) - seen:
            seen.add(child)
            waiting.append(child)
            yield child


def _prctl(option: int, argument: int) -> None:
    if not LINUX:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {argument}): {os.strerror(code)}")
