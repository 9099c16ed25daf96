"""Waits, when a host stops, until a run can be given back: at a boundary, or where it is once the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentvisor.host.boundary import Boundary
from agentvisor.host.drain import Drain
from agentvisor.host.running_agent import RunningAgent


async def until_boundary(
    agent: RunningAgent,
    boundary: Boundary,
    drain: Drain,
    others: Sequence[asyncio.Task[None]],
    *,
    left: float,
    waits: bool,
) -> None:
    """Return at the run's next boundary, when the drain is over, or when the run ends otherwise.

    Args:
        agent: the run's; its end is one.
        boundary: where its checkpoints pass.
        drain: the host's.
        others: what else may end the run: the loss of the attempt, a caller's cancel.
        left: seconds of its time budget.
        waits: whether the agent waits for its checkpoints; one that does not is in its next step when one passes, and
            makes way by itself or not at all.
    """
    agent.drain()
    boundary.wanted = waits
    reached = asyncio.create_task(boundary.reached.wait())
    over = asyncio.create_task(drain.over.wait())
    hurry = asyncio.create_task(_hurry(boundary, drain))
    try:
        await asyncio.wait([reached, over, agent.ended, *others], timeout=left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Who is only cancelled may still store what he likes on his way out.
        boundary.wanted = boundary.reached.is_set()
        for task in (reached, over, hurry):
            task.cancel()


async def _hurry(boundary: Boundary, drain: Drain) -> None:
    await drain.hurry.wait()
    boundary.hurry = True
