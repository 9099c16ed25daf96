"""Waits for the end of an attempt's agent, or ends it for one of the reasons that there are; what is then reported."""

from __future__ import annotations

import asyncio
from time import monotonic

import structlog

from agentvisor.host.attempt_report import close_of, close_of_stopped, name_of
from agentvisor.host.attempt_services import AttemptServices
from agentvisor.host.attempt_stops import AttemptStops, Stops
from agentvisor.host.boundary import Boundary
from agentvisor.host.giving_back import until_boundary
from agentvisor.host.journal import Journal
from agentvisor.host.running_agent import RunningAgent
from agentvisor.protocol.v1 import journal_pb2, run_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.run")


class AgentWatch:
    """Of one agent that runs."""

    def __init__(
        self,
        agent: RunningAgent,
        journal: Journal,
        boundary: Boundary,
        services: AttemptServices,
        *,
        ends_at: float,
        waits: bool,
    ) -> None:
        """Args:
        ends_at: when the run's time budget is used up, by the monotonic clock of this host.
        waits: whether the agent waits for its checkpoints (see until_boundary).
        """
        self._agent = agent
        self._journal = journal
        self._boundary = boundary
        self._services = services
        self._ends_at = ends_at
        self._waits = waits

    async def run(self, stops: AttemptStops) -> journal_pb2.AttemptClose | None:
        """Wait for whatever comes first: the agent's end, the loss of the attempt, a cancel, the time budget."""
        agent = self._agent
        with stops.watched() as stop:
            await stop.first(agent.ended, timeout=self._seconds_left())
            if self._journal.is_fenced:
                return None
            if agent.ended.done():
                return close_of(await agent.ended, self._services.max_output)
            stop.check()
            if stop.cancelled:
                return await self._stop(run_pb2.ENDING_CANCELLED)
            if stop.host_stops:
                return await self._give_back(stop)
            return await self._stop(run_pb2.ENDING_TIME_BUDGET)

    def _seconds_left(self) -> float:
        return max(0.0, self._ends_at - monotonic())

    async def _give_back(self, stop: Stops) -> journal_pb2.AttemptClose | None:
        """The host stops: at its next boundary the run goes to another host, at the latest when the drain is over."""
        agent, boundary, drain = self._agent, self._boundary, self._services.drain
        others, left = stop.but_the_host, self._seconds_left()
        await until_boundary(agent, boundary, drain, others, left=left, waits=self._waits)
        if self._journal.is_fenced:
            return None
        if agent.ended.done():
            close = close_of(agent.ended.result(), self._services.max_output)
            log.info("run_given_back", at_boundary=True, ending=name_of(close.ending))
            return close
        stop.check()
        if not boundary.reached.is_set():
            if stop.cancelled:
                return await self._stop(run_pb2.ENDING_CANCELLED)
            if not drain.over.is_set():
                return await self._stop(run_pb2.ENDING_TIME_BUDGET)
        log.info("run_given_back", at_boundary=boundary.reached.is_set())
        agent.kill()
        await asyncio.wait([agent.ended], timeout=self._services.stop_grace)
        ending = run_pb2.ENDING_CANCELLED if stop.cancelled else run_pb2.ENDING_HOST_STOPPED
        return close_of_stopped(agent, ending, self._services.max_output)

    async def _stop(self, ending: run_pb2.Ending.ValueType) -> journal_pb2.AttemptClose | None:
        grace = self._services.stop_grace
        log.info("agent_stopping", why=name_of(ending))
        self._agent.cancel(grace)
        await asyncio.wait([self._agent.ended], timeout=2 * grace + 1)
        return None if self._journal.is_fenced else close_of_stopped(self._agent, ending, self._services.max_output)
