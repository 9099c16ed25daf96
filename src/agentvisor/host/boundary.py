"""Where a run can be given back without running anything twice: a checkpoint is durable and its next step has not begun."""

from __future__ import annotations

import asyncio

from agentvisor.core.ids import ROOT, Namespace


class Boundary:
    """Once asked for, holds the answer to the next checkpoint back: the agent, waiting for it, begins nothing.

    Between the root's checkpoints every task of a super-step has ended. A subgraph's checkpoint is taken only when
    `hurry` is set: its siblings may be in the middle of something.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.hurry = False
        self.reached = asyncio.Event()

    async def pass_by(self, namespace: Namespace) -> None:
        """Called with a checkpoint durable and not yet answered; does not return at the boundary that was asked for."""
        if self.wanted and (namespace == ROOT or self.hurry):
            self.reached.set()
            await asyncio.Event().wait()  # until the agent is gone, and this call with it
