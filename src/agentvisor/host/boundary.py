"""Where a run can be given back so that nothing runs twice: a checkpoint is durable, its next step has not begun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentvisor.core.ids import ROOT, Namespace


class Boundary:
    """Once asked for, holds the answer to the next checkpoint back: the agent, waiting for it, begins nothing.

    Between the root's checkpoints every task of a super-step has ended. A subgraph's checkpoint is taken only when
    `hurry` is set: its siblings may be in the middle of something.
    """

    def __init__(self, attempt_over: Callable[[], Awaitable[None]]) -> None:
        self.wanted = False
        self.hurry = False
        self.reached = asyncio.Event()
        self._attempt_over = attempt_over

    async def pass_by(self, namespace: Namespace) -> None:
        """Called with a checkpoint durable and not yet answered; at the boundary, returns when the attempt is over."""
        if self.wanted and (namespace == ROOT or self.hurry):
            self.reached.set()
            await self._attempt_over()
