"""Functions that make a host's metrics move: each does one thing, and says so."""

import os
import signal
import time
from pathlib import Path

import agentvisor
from agents.limits import noise, put
from agentvisor import checkpoint
from agentvisor.langgraph import AgentVisorCheckpointer


def saves(times: int = 3, size: int = 100) -> int:
    """So many checkpoints of plain JSON."""
    for number in range(times):
        checkpoint.save("progress", {"number": number, "text": os.urandom(size // 2).hex()})
    return times


def grows(values: int, size: int) -> int:
    """A channel more with each checkpoint; they do not compress."""
    saver, channels = AgentVisorCheckpointer(), dict[str, bytes]()
    for number in range(values):
        channels[f"part_{number}"] = noise(size)
        put(saver, channels)
    return len(channels)


def fails() -> None:
    """An error of the agent."""
    raise ValueError("as it was told")


def asks() -> object:
    """A question, and no answer yet."""
    return agentvisor.interrupt("go on?")


def dies() -> None:
    """The process is killed, each time."""
    os.kill(os.getpid(), signal.SIGKILL)


def waits(gate: str) -> str:
    """Until a file is there; says that it waits by another."""
    Path(gate).with_suffix(".began").touch()
    until = time.monotonic() + 60
    while not Path(gate).exists() and time.monotonic() < until:
        time.sleep(0.02)
    return "done"
