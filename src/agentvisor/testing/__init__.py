"""Testing agents where they run: a real host and Temporal as a pytest fixture, scripted models, and faults on purpose.

The fixtures come with the package's pytest plugin (`agentvisor.testing.plugin`). Scripted models are in
`agentvisor.testing.langgraph` and `agentvisor.testing.strands`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from agentvisor.testing.faults import Fault, delay, kill, points, stop
from agentvisor.testing.script import Call, call

if TYPE_CHECKING:
    from agentvisor.testing.chance import Chance
    from agentvisor.testing.host import Host
    from agentvisor.testing.thread import Run, Thread

__all__ = ["Call", "Chance", "Fault", "Host", "Run", "Thread", "call", "delay", "kill", "points", "stop"]

_PLACES = {"Chance": "chance", "Host": "host", "Run": "thread", "Thread": "thread"}


def __getattr__(name: str) -> object:
    """Import what is asked for: an agent under test, and a pytest that tests something else, need none of it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
