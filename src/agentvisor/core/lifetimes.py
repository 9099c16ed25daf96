"""How long a thread lives after it was last used, and what becomes of it then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Strategy(IntEnum):
    """What is done with a thread whose time is over."""

    DELETE = 1
    """It is removed, with all that belongs to it."""
    KEEP_LATEST = 2
    """Of every namespace the newest checkpoint stays."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A thread's time to live: counted from its last use, never while a run waits or runs."""

    ttl_ms: int
    strategy: Strategy = Strategy.DELETE
    while_waiting: bool = False
    """Also where a question waits for an answer; otherwise whoever is asked has all the time there is."""
