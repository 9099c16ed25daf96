"""A place in a trace, as W3C's traceparent names it; from it follow the places of a run and of its attempts.

Ids that follow from the run need no agreement: the host that starts an agent tells it its parent, and another host ends
that span days later, when the first is gone.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hashlib import sha256

from agentvisor.protocol.v1 import run_pb2

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRACESTATE = re.compile(r"[\x20-\x7e]{0,512}")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


@dataclass(frozen=True, slots=True)
class Place:
    """One span of a trace."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    sampled: bool
    """Whether what is below it is recorded."""
    state: str = ""
    """W3C's tracestate, handed on as it came."""

    @staticmethod
    def read(traceparent: str, tracestate: str = "") -> Place | None:
        """What the headers say; None where they say nothing, or not what W3C allows."""
        found = _TRACEPARENT.fullmatch(traceparent.strip())
        if found is None:
            return None
        version, trace_id, span_id, flags, rest = found.groups()
        if version == "ff" or (version == "00" and rest) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
            return None
        state = tracestate if _TRACESTATE.fullmatch(tracestate) else ""
        return Place(trace_id, span_id, bool(int(flags, 16) & 1), state)

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    @property
    def headers(self) -> dict[str, str]:
        """What another program is told of it."""
        return {"traceparent": self.traceparent, **({"tracestate": self.state} if self.state else {})}

    @property
    def environment(self) -> dict[str, str]:
        """The same for a process."""
        return {name.upper(): value for name, value in self.headers.items()}

    def of_run(self, run_id: str) -> Place:
        """The span of a run that was asked for here."""
        return self._of(run_id)

    def of_attempt(self, run_id: str, attempt: int) -> Place:
        """The span of one attempt of a run that was asked for here."""
        return self._of(f"{run_id}/{attempt}")

    def _of(self, name: str) -> Place:
        return replace(self, span_id=sha256(f"{self.trace_id}/{self.span_id}/{name}".encode()).hexdigest()[:16])


def asked_at(spec: run_pb2.RunSpec) -> Place | None:
    """Where a run was asked for; None: it is not traced."""
    return Place.read(spec.traceparent, spec.tracestate) if spec.traceparent else None


_current: ContextVar[Place | None] = ContextVar("agentvisor_place", default=None)


def current() -> Place | None:
    """The span that this task works for."""
    return _current.get()


def stay(place: Place) -> None:
    """Work for this span from now on; for a task that does nothing else."""
    _current.set(place)


@contextmanager
def within(place: Place | None) -> Generator[None]:
    """Work for this span; None: for that which is current, if any."""
    if place is None:
        yield
        return
    token = _current.set(place)
    try:
        yield
    finally:
        _current.reset(token)


def mark(spec: run_pb2.RunSpec) -> None:
    """Note in a run's specification where it is asked for."""
    place = current()
    if place is not None:
        spec.traceparent, spec.tracestate = place.traceparent, place.state
