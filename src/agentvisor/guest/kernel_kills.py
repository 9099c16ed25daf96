"""Whether the kernel has lately killed a process because memory ran out: SIGKILL alone does not say who sent it."""

from __future__ import annotations

import re
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class KernelKills:
    """The kernel's own count: of this cgroup and those below it (version 2), else of the whole machine."""

    def __init__(self, cgroups: Path = CGROUPS, vmstat: Path = VMSTAT, own: Path = Path("/proc/self/cgroup")) -> None:
        self._file = _events_of(cgroups, own) or vmstat
        self._before = self._latest = self._read()

    def sample(self) -> None:
        """Look; to be called every second or so, since what is older than two looks is not lately."""
        self._before, self._latest = self._latest, self._read()

    def rose_lately(self) -> bool:
        """Whether there was one since the look before the last."""
        return self._read() > self._before

    def _read(self) -> int:
        try:
            found = _COUNT.search(self._file.read_text())
        except OSError:
            return 0
        return int(found[1]) if found else 0


def _events_of(cgroups: Path, own: Path) -> Path | None:
    """This process's `memory.events`, where the memory controller of cgroups version 2 counts for it."""
    try:
        found = re.search(r"^0::/(.*)$", own.read_text(), re.MULTILINE)
    except OSError:
        return None
    events = cgroups / (found[1] if found else "") / "memory.events"
    return events if found and events.exists() else None
