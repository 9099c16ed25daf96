"""The activities of a cron that fires; what went wrong for now is tried again by Temporal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from agentvisor.core.crons import Cron
from agentvisor.core.errors import AgentVisorError, Conflict, Internal, NotFound, StorageUnavailable, Unavailable
from agentvisor.core.ids import RunId
from agentvisor.core.owners import Owner
from agentvisor.host.beating import beating
from agentvisor.host.crons import Crons
from agentvisor.host.metrics import CRON_RUNS
from agentvisor.host.tracing.spans import NO_TRACING, RUN, Kind, Tracing
from agentvisor.host.workflow.cron import FIRE_ACTIVITY, RELEASE_ACTIVITY
from agentvisor.protocol.v1 import run_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.crons")

_FOR_NOW = (Unavailable, StorageUnavailable, Internal)

Start = Callable[[Cron, RunId], Awaitable[str]]
Release = Callable[[Owner, RunId], Awaitable[None]]


class CronActivities:
    """What a host's worker runs for each try."""

    def __init__(self, crons: Crons, start: Start, release: Release, tracing: Tracing = NO_TRACING) -> None:
        self._tracing = tracing
        self._crons = crons
        self._start = start
        self._release = release

    @activity.defn(name=FIRE_ACTIVITY)
    async def fire(self, encoded: bytes) -> str:
        """One try to start the run that is due; what has become of that."""
        told = run_pb2.FireCron.FromString(encoded)
        try:
            with self._tracing.span(
                "cron", Kind.INTERNAL, None, {"agentvisor.cron_id": told.cron_id, RUN: told.run_id}
            ):
                async with beating():
                    outcome = await self._fire(told)
        except _FOR_NOW as error:
            CRON_RUNS.labels("again").inc()
            raise ApplicationError(error.message, type=error.code) from error
        except AgentVisorError as error:
            log.warning("cron_failed", cron=told.cron_id, error=error.code, text=error.message)
            CRON_RUNS.labels("failed").inc()
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error
        CRON_RUNS.labels("started" if outcome.startswith("started") else "not_started").inc()
        log.info("cron_fired", cron=told.cron_id, run=told.run_id, outcome=outcome)
        return outcome

    async def _fire(self, told: run_pb2.FireCron) -> str:
        try:
            cron = await self._crons.find(Owner(told.owner), told.cron_id)
        except NotFound:
            if not await self._crons.end_stray(told.cron_id):
                raise Unavailable("the cron is not there yet, or was just deleted") from None
            return "not started: the cron was deleted"
        if cron.clock != told.clock:
            await self._crons.fit(cron)
            return "not started: the cron was changed meanwhile"
        try:
            return await self._start(cron, RunId(told.run_id))
        except Conflict as error:
            return f"not started: {error.message}"

    @activity.defn(name=RELEASE_ACTIVITY)
    async def release(self, encoded: bytes) -> str:
        """Let the thread of a run go that has been started for good."""
        told = run_pb2.FireCron.FromString(encoded)
        async with beating():
            with suppress(NotFound):
                await self._release(Owner(told.owner), RunId(told.run_id))
        return ""
