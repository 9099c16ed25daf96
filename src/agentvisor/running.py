"""What an agent may know of the run that it is in, and what it says while it works."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field

from agentvisor.client.connection import own_thread
from agentvisor.client.socketpair import CHANNEL_FD, Channel, own_channel
from agentvisor.client.strict_json import dump
from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.protocol.metadata import Json, metadata_from_struct
from agentvisor.protocol.v1.guest_pb2 import StreamEvent, StreamEvents

__all__ = ["CurrentRun", "current_run", "progress"]

EVENT_BYTES = 4 * 1024 * 1024
"""Of one progress event as JSON: what a frame to the supervisor has room for, with company."""


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """The run that this process works on. The same wherever in the process it is asked for."""

    thread_id: str
    run_id: str
    attempt: int
    """Counts from 1."""
    agent: str
    """The agent's name in the configuration."""
    metadata: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the caller gave with the run."""
    deadline: dt.datetime | None = None
    """When this attempt's time budget (`temporal.run_timeout`) is used up, in UTC; None where the host said none."""

    @property
    def is_restart(self) -> bool:
        """Whether an earlier attempt of the run was lost, or handed over by a host that stopped."""
        return self.attempt > 1

    def time_left(self) -> dt.timedelta | None:
        """What is left of this attempt's time budget, never below nothing; None where there is no deadline."""
        if self.deadline is None:
            return None
        return max(dt.timedelta(), self.deadline - dt.datetime.now(dt.UTC))


def current_run() -> CurrentRun:
    """The run that calls this: from any agent, node or tool, from its threads and its coroutines.

    Raises `InvalidInput` outside a run.
    """
    task = _channel("current_run").task
    deadline = dt.datetime.fromtimestamp(task.deadline_ms / 1000, dt.UTC) if task.deadline_ms else None
    return CurrentRun(
        thread_id=task.thread_id,
        run_id=task.run_id,
        attempt=task.attempt,
        agent=task.spec.agent,
        metadata=metadata_from_struct(task.spec.metadata),
        deadline=deadline,
    )


def progress(value: object) -> None:
    """Tell those who stream this run (stream mode "custom") how it is going; nothing of it is kept.

    It may be called wherever `current_run` may, and what was said first arrives first. A restarted run says it again.

    Args:
        value: JSON; at most 4 MiB of it.

    Raises `InvalidInput` outside a run and for what is not JSON, naming the place; `ValueTooLarge`.
    """
    channel = _channel("progress")
    data = dump(value, "the progress event")
    if len(data) > EVENT_BYTES:
        raise ValueTooLarge(f"a progress event has {len(data)} bytes, and its limit is {EVENT_BYTES}: say less of it")
    # What a runner holds back, to send it in company, was said before.
    channel.flush_events()
    channel.send_events(StreamEvents(events=[StreamEvent(mode="custom", data=data)]))


def _channel(name: str) -> Channel:
    if own_thread() is None or CHANNEL_FD not in os.environ:
        raise InvalidInput(
            f"agentvisor.{name} works inside a run: in an agent that AgentVisor runs (`agentvisor dev`), and not in a "
            "program that talks to it from outside"
        )
    return own_channel()
