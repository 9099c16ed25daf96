"""What tells a crew's tasks apart: their order, what they ask for, and who does them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json


class PlannedAgent(Protocol):
    """An agent, as far as it tells a task apart."""

    role: str


class PlannedTask(Protocol):
    """A task, as far as it is told apart; CrewAI's own `key` is that of its texts before inputs are put in."""

    description: str

    @property
    def key(self) -> str: ...

    @property
    def agent(self) -> PlannedAgent | None: ...


@dataclass(frozen=True)
class Identity:
    """One task's."""

    text: str
    role: str
    """Of the agent; empty where the crew's manager chooses."""

    def to_json(self) -> dict[str, Json]:
        """As it is kept beside the output."""
        return {"text": self.text, "role": self.role}


def plan_of(tasks: Sequence[PlannedTask]) -> list[Identity]:
    """The tasks of a crew that was not started yet: starting it writes inputs into texts and roles."""
    return [
        Identity(hashlib.sha256(one.key.encode()).hexdigest()[:16], one.agent.role if one.agent else "")
        for one in tasks
    ]


def check(kept: Mapping[str, Json], plan: Sequence[Identity], tasks: Sequence[PlannedTask]) -> None:
    """Refuse a crew in which a finished task is another one now: its output would be taken for the other's.

    What was not finished may have changed, and tasks may have come after. Raises `InvalidInput`.
    """
    for at, entry in kept.items():
        number = number_of(at)
        if number is None or not isinstance(entry, dict):
            continue
        live = plan[number].to_json() if number < len(plan) else None
        if entry.get("identity") == live:
            continue
        known = str(entry.get("description"))[:80]
        now = f"now {tasks[number].description[:80]!r} by {plan[number].role!r}" if live else "not there any more"
        raise InvalidInput(
            f"task {number + 1} of the crew has changed since it was finished: it was {known!r}, and is {now}. Give "
            "the thread a run with an input to begin anew, or run the crew as it was to go on",
            task=str(number + 1),
        )


ROOT = "crew"


def place_of(scope: str, number: int) -> str:
    """Where the output of a crew's task is kept."""
    return f"{scope}/{number}"


def number_of(at: str) -> int | None:
    """The task's number, where it is one of the crew that is the agent; None inside a flow."""
    scope, _, number = at.rpartition("/")
    return int(number) if scope == ROOT else None
