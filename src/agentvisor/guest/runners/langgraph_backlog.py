"""Keeps a graph that does not wait for its checkpoints (durability "async") from running far ahead of them.

LangGraph queues a checkpoint for each step without a bound: with a store that is slow or away, a fast graph fills the
process's memory with them, and all that it did since the last one that was stored is lost with the process
(langgraph#7094). What is held back is the run's own graph, between two of its steps.
"""

from __future__ import annotations

import asyncio

from agentvisor.client.known import CheckpointName
from agentvisor.core.ids import ROOT

MOST = 32
"""Checkpoints of the root that may be under way when its next step begins."""


class Backlog:
    """For one graph, in the event loop in which it runs and stores."""

    def __init__(self) -> None:
        self._under_way: set[str] = set()
        self._ended: set[str] = set()
        """Ended before the graph's own event told of them."""
        self._room = asyncio.Event()
        self._room.set()
        self._failed = False

    def made(self, checkpoint_id: str) -> None:
        """The root has made a checkpoint, whose put is under way, or waits for the one before it."""
        if checkpoint_id in self._ended:
            self._ended.discard(checkpoint_id)
            return
        self._under_way.add(checkpoint_id)
        if len(self._under_way) > MOST and not self._failed:
            self._room.clear()

    async def until_room(self) -> None:
        """Wait until the graph may go on."""
        await self._room.wait()

    def put_ended(self, name: CheckpointName, stored: bool) -> None:  # noqa: FBT001 (puts.Ended)
        """Take in how a put ended."""
        if name.namespace != ROOT:
            return
        if name.checkpoint_id in self._under_way:
            self._under_way.discard(name.checkpoint_id)
        else:
            self._ended.add(name.checkpoint_id)
        # LangGraph does not attempt the puts that wait for one that has failed: nothing would ever make room.
        self._failed = self._failed or not stored
        if self._failed or len(self._under_way) <= MOST:
            self._room.set()
