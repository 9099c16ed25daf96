"""The activity that sweeps a thread whose time to live is over; what went wrong for now is tried again by Temporal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from temporalio import activity

from agentvisor.core.errors import Conflict, NotFound, ThreadFailed
from agentvisor.core.ids import ThreadId
from agentvisor.core.lifetimes import Strategy
from agentvisor.core.owners import Owner
from agentvisor.host.beating import beating
from agentvisor.host.workflow.expiring import EXPIRE_ACTIVITY
from agentvisor.protocol.v1 import run_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.threads")


class ExpireActivity:
    """What a host's worker runs for each try."""

    def __init__(
        self,
        erase: Callable[[ThreadId, str, Owner], Awaitable[None]],
        prune: Callable[[ThreadId], Awaitable[None]],
    ) -> None:
        self._erase = erase
        self._prune = prune

    @activity.defn(name=EXPIRE_ACTIVITY)
    async def run(self, encoded: bytes) -> None:
        """One try to sweep one thread."""
        task = run_pb2.ExpireThread.FromString(encoded)
        thread_id = ThreadId(task.thread_id)
        async with beating():
            if Strategy(task.strategy) is Strategy.KEEP_LATEST:
                try:
                    await self._prune(thread_id)
                except (NotFound, Conflict, ThreadFailed) as error:
                    log.info("thread_not_pruned", thread=thread_id, why=error.message)  # it is used again, or gone
                return
            await self._erase(thread_id, task.execution, Owner(task.owner))
        log.info("thread_expired", thread=thread_id)
        # There is nobody left to be told. (If there is, this times out, and all of it is done again.)
        activity.raise_complete_async()
