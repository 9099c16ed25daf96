"""What the runner contract's agents do outside, whatever framework they are written with."""

import os
import signal

# Not from `agents`: beside an agent of the OpenAI Agents SDK that is the SDK.
from . import signs  # noqa: TID252
from .effects import effect  # noqa: TID252

WORDS = ("one", "two", "three", "four")
UNKEEPABLE = object()
"""No framework can store it."""


def begun() -> None:
    effect("began")


def first() -> None:
    """A step that finishes."""
    effect("did first")


def second() -> str:
    """A step in which the first process dies."""
    effect("began second")
    if os.environ["AGENTVISOR_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    effect("did second")
    return "survived"


def fail() -> None:
    raise LookupError("no customer 42")


def wait() -> None:
    effect("waits")
    signs.wait_for("gate")
