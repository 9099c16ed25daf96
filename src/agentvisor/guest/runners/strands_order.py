"""What a Strands run is to do, what it needs of the host for that, and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentvisor._strands.asked import Asked
from agentvisor.protocol.metadata import Json


@dataclass(frozen=True, slots=True)
class Host:
    """What a run needs of the host."""

    load: Callable[[str], Awaitable[Json]]
    """What was saved last under a key; None where nothing was."""
    save: Callable[[str, dict[str, Json]], Awaitable[object]]
    report: Callable[[Sequence[Asked]], None]
    """What waits for a person from now on."""
    show: Callable[[Mapping[str, object]], None]
    """An event of Strands' stream."""
    is_leaving: Callable[[], bool]
    """Whether the host would have the run end between two steps."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the run is to do."""

    run_id: str
    input: Json = None
    answers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    forgets: bool = False
    """Its questions were given up, now or before."""
    invocation: dict[str, object] = field(default_factory=dict[str, object])
    """What the agent's tools and hooks find as `invocation_state`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended; neither is so where the host is leaving, and the rest is to be done elsewhere."""

    output: Json = None
    completed: bool = False
    paused: bool = False
