"""AgentVisor runs LLM agents so that anything may be killed at any time and nothing acknowledged is lost."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentvisor.effects import NOT_DONE, UnknownOutcome, forget_effect, idempotency_key, once
    from agentvisor.questions import interrupt
    from agentvisor.running import CurrentRun, current_run, progress

__version__ = "0.1.0"

__all__ = [
    "NOT_DONE",
    "CurrentRun",
    "UnknownOutcome",
    "current_run",
    "forget_effect",
    "idempotency_key",
    "interrupt",
    "once",
    "progress",
]

_PLACES = {
    **dict.fromkeys(("NOT_DONE", "UnknownOutcome", "forget_effect", "idempotency_key", "once"), "agentvisor.effects"),
    "interrupt": "agentvisor.questions",
    **dict.fromkeys(("CurrentRun", "current_run", "progress"), "agentvisor.running"),
}


def __getattr__(name: str) -> object:
    """Import what is asked for: the command line and the host need none of it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'agentvisor' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
