"""When a thread's execution continues as new: early between runs, late under one, before Temporal would end it.

Temporal's limits for one execution are 51,200 events or 50 MB, 10,000 signals and 2,000 updates. Between runs half of
what counts under a live one is enough: then nobody is there to be disturbed.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentvisor.core.thread import Settings

SIGNALS = 6_000
UPDATES = 1_200
_FEWEST_EVENTS = 20
"""Of an execution first: where the state alone is over a limit, each would be due at once, for ever."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an execution has used up so far."""

    events: int
    history_bytes: int
    signals: int
    updates: int
    suggested: bool = False
    """Temporal itself says that it is time."""


def is_due(usage: Usage, settings: Settings, *, is_idle: bool) -> bool:
    """Whether the execution continues as new now; idle: no attempt is alive."""
    if usage.events < _FEWEST_EVENTS:
        return False
    share = 2 if is_idle else 1
    return (
        usage.suggested
        or usage.events * share >= settings.compact_events
        or usage.history_bytes * share >= settings.compact_bytes
        or usage.signals * share >= (settings.compact_signals or SIGNALS)
        or usage.updates * share >= (settings.compact_updates or UPDATES)
    )
