"""What a host makes spans with; a host that is told to trace nothing makes none, and imports nothing for it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from agentvisor.host.tracing.place import Place

Attributes = Mapping[str, str | int | bool]

THREAD = "agentvisor.thread_id"
RUN = "agentvisor.run_id"
ATTEMPT = "agentvisor.attempt"
AGENT = "agentvisor.agent"
FRAMEWORK = "agentvisor.framework"
HOST = "agentvisor.host_id"


class Kind(Enum):
    """Of a span, as OpenTelemetry has it."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class Span(Protocol):
    """A span that goes on."""

    @property
    def place(self) -> Place | None:
        """Where it is in its trace; None: nothing is traced."""
        ...

    def rename(self, name: str) -> None: ...

    def note(self, attributes: Attributes) -> None: ...

    def fail(self, why: str) -> None:
        """It ends in an error; `why` holds no contents."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """A span that is over, with an id that is known beforehand."""

    name: str
    place: Place
    parent: Place
    start_ms: int
    end_ms: int
    attributes: Attributes
    after: Place | None = None
    """Another span that it follows."""
    error: str = ""
    """Why it failed; without contents."""


class Tracing(Protocol):
    """Makes spans and sends them; never waits for whom it sends them to."""

    @property
    def is_on(self) -> bool: ...

    def span(self, name: str, kind: Kind, parent: Place | None, attributes: Attributes) -> AbstractContextManager[Span]:
        """A span that lasts as long as its context; without a parent it begins a trace."""
        ...

    def tell(self, span: Told) -> None:
        """Record a span whose begin and end are known."""
        ...

    async def close(self) -> None:
        """Send what there is, for a moment."""
        ...


class NoTracing:
    """Of a host that traces nothing."""

    is_on = False

    @contextmanager
    def span(self, name: str, kind: Kind, parent: Place | None, attributes: Attributes) -> Generator[Span]:  # noqa: ARG002
        yield _NOTHING

    def tell(self, span: Told) -> None:
        """Nothing is traced."""

    async def close(self) -> None:
        """There is nothing to send."""


class _Nothing:
    place = None

    def rename(self, name: str) -> None: ...

    def note(self, attributes: Attributes) -> None: ...

    def fail(self, why: str) -> None: ...


_NOTHING = _Nothing()
NO_TRACING = NoTracing()
