"""Faults as values: what happens to whom, before or after which operation of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, cast, get_args

Action = Literal["kill", "stop", "delay"]
Target = Literal["agent", "guest", "host", "temporal"]
When = Literal["before", "after"]

ANY = "any"
"""Stands for every operation that is journalled."""

JOURNALLED = ("put", "put_writes", "project", "change_thread_state", "effect", "question")
"""What an agent asks the host to keep: checkpoints, finished tasks, projections, thread state, effects, questions."""

READS = (
    "get", "list", "get_blobs", "delta_history", "put_part", "get_part", "get_thread_state", "list_thread_state",
    "items",
)  # fmt: skip
"""What is read, carried, or asked of the store of items, which is no part of a thread."""
LIFE = ("start", "outcome")
"""An agent's process is started; it has said its last word."""

OPERATIONS = (ANY, *JOURNALLED, *READS, *LIFE)


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a thread's life: `before:put_writes:2`, `after:any:5`.

    Before: the agent has sent the operation, and the host has not seen it. After: the host has acknowledged it, and the
    agent has not been told. The n-th is counted over all attempts and runs since the fault was injected; for `after`,
    refusals do not count.
    """

    when: When
    operation: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `(before|after):(operation):(n)`; ValueError says what is wrong with it."""
        when, _, rest = text.partition(":")
        operation, _, number = rest.partition(":")
        if when not in get_args(When):
            raise ValueError(f"{text!r} is no point: it begins with before: or after:, as in before:put_writes:2")
        if operation not in OPERATIONS:
            raise ValueError(f"{text!r}: there is no operation {operation!r}; there are {', '.join(OPERATIONS)}")
        if not (number.isascii() and number.isdecimal() and int(number)):
            raise ValueError(f"{text!r}: {number!r} must be 1 for the first such operation, 2 for the second...")
        return cls(cast("When", when), operation, int(number))

    def __str__(self) -> str:
        return f"{self.when}:{self.operation}:{self.number}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Happens once, in the thread that it was injected into; made by `kill`, `stop` or `delay`."""

    action: Action
    at: Point
    target: Target = "agent"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.target not in get_args(Target):
            raise ValueError(f"there is no target {self.target!r}; there are {', '.join(get_args(Target))}")
        if self.action != "kill" and self.seconds <= 0:
            raise ValueError(f"{self.action}: for how many seconds? {self.seconds!r} is not possible")
        if self.target == "agent" and (self.at.when, self.at.operation) == ("before", "start"):
            raise ValueError("before:start there is no agent yet: use after:start, or the target guest or host")
        if self.target == "agent" and self.action != "delay" and self.at.operation == "outcome":
            raise ValueError("its outcome said, an agent waits for nobody and ends: use the target guest or host")

    def __str__(self) -> str:
        target = "" if self.action == "delay" else f', target="{self.target}"'
        seconds = "" if self.action == "kill" else f", seconds={self.seconds:g}"
        return f'{self.action}(at="{self.at}"{target}{seconds})'

    def to_json(self) -> dict[str, object]:
        """As it is told to the host under test."""
        return {"action": self.action, "at": str(self.at), "target": self.target, "seconds": self.seconds}

    @classmethod
    def from_json(cls, told: dict[str, object]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            action=cast("Action", told["action"]),
            at=Point.parse(str(told["at"])),
            target=cast("Target", told["target"]),
            seconds=float(str(told["seconds"])),
        )


def points(count: int, operation: str = ANY) -> list[str]:
    """Before and after each of the first `count` operations: an agent that survives a kill at all of them survives."""
    return [str(Point(when, operation, number)) for number in range(1, count + 1) for when in get_args(When)]


def kill(at: str, target: Target = "agent") -> Fault:
    """SIGKILL: the agent's process, its guest (and so all agents in it), the host, or the Temporal server."""
    return Fault("kill", Point.parse(at), target)


def stop(at: str, target: Target = "agent", *, seconds: float) -> Fault:
    """SIGSTOP, and SIGCONT after so many seconds: frozen, then back, with all that it was about to say."""
    return Fault("stop", Point.parse(at), target, seconds)


def delay(at: str, *, seconds: float) -> Fault:
    """The agent's message (before), or the host's answer (after), takes so long; what follows it waits behind it."""
    return Fault("delay", Point.parse(at), seconds=seconds)
