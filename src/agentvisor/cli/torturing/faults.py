"""What is done to the stage: the kinds of faults, and the mix of them that a seed gives."""

from __future__ import annotations

from enum import Enum
from random import Random


class Fault(Enum):
    """One thing that can happen to a process."""

    AGENT_KILLED = "agent killed"
    GUEST_KILLED = "guest killed"
    HOST_KILLED = "host killed"
    TEMPORAL_KILLED = "Temporal killed"
    HOST_FROZEN = "host frozen, and awake again"
    HOST_STOPPED = "host told to stop"

    @property
    def is_kill(self) -> bool:
        """Whether it is a SIGKILL."""
        return self.value.endswith("killed")


_SHARES = {
    Fault.AGENT_KILLED: (60, 80),
    Fault.GUEST_KILLED: (4, 9),
    Fault.HOST_KILLED: (2, 4),
    Fault.TEMPORAL_KILLED: (1, 2),
    Fault.HOST_FROZEN: (0.5, 1),
    Fault.HOST_STOPPED: (0.5, 1),
}
"""The least and the most that a seed gives; total over the faults."""


class Mix:
    """Which fault comes next, and when."""

    def __init__(self, chance: Random, *, pause: float) -> None:
        self._chance = chance
        self._pause = pause
        self.shares = {fault: chance.uniform(*_SHARES[fault]) for fault in Fault}

    def next_fault(self) -> Fault:
        return self._chance.choices(list(self.shares), list(self.shares.values()))[0]

    def next_pause(self) -> float:
        """Seconds; never so long that a short torture would be none."""
        return min(self._chance.expovariate(1 / self._pause), 3 * self._pause)
