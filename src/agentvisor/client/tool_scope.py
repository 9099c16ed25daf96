"""The tool use in which code runs, where an agent's hook tells it: a scope of effects and questions."""

from __future__ import annotations

from contextvars import ContextVar

_entered: ContextVar[tuple[tuple[int, str], ...]] = ContextVar("agentvisor_tool_uses", default=())
"""An agent and its tool use, and those of the agents that are tools of it, the innermost last."""


def enter(agent: int, tool_use: str) -> None:
    _entered.set((*_entered.get(), (agent, tool_use)))


def leave(agent: int, tool_use: str | None = None) -> None:
    """Leave the innermost tool use if it is that one; without one, all innermost ones of that agent."""
    entered = _entered.get()
    while entered and entered[-1][0] == agent and tool_use in (None, entered[-1][1]):
        entered = entered[:-1]
    _entered.set(entered)


def scope() -> str:
    """Of the innermost tool use; empty outside any."""
    entered = _entered.get()
    return f"tool/{entered[-1][1]}/" if entered else ""
