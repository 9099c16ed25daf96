"""What one check found: good or not, what was seen, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentvisor.core.errors import AgentVisorError, Unavailable


class Verdict(StrEnum):
    """How it is."""

    OK = "ok"
    WARNING = "warning"
    """A host works, for now or with less than was meant."""
    FAILED = "failed"
    """A host does not start, or does not work."""
    SKIPPED = "skipped"
    """Nobody looked: another check has to pass first, or nobody asked for it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one check."""

    name: str
    verdict: Verdict
    seen: str
    advice: str = ""
    """What to do; empty where nothing is to be done."""
    error: type[AgentVisorError] = Unavailable
    """Of a failure: which class of error a host would meet; the program's exit code follows from it."""


def ok(name: str, seen: str) -> Finding:
    return Finding(name, Verdict.OK, seen)


def warning(name: str, seen: str, advice: str) -> Finding:
    return Finding(name, Verdict.WARNING, seen, advice)


def failed(name: str, seen: str, advice: str, error: type[AgentVisorError] = Unavailable) -> Finding:
    return Finding(name, Verdict.FAILED, seen, advice, error)


def skipped(name: str, why: str) -> Finding:
    return Finding(name, Verdict.SKIPPED, why)
