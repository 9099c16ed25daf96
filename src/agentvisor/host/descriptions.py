"""What an agent is, as its own code says: asked in a guest, where that may run, and kept until the code changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import structlog

from agentvisor.core.errors import AgentBroken, InvalidInput, PermissionRefused, Unavailable
from agentvisor.core.owners import EVERYONE
from agentvisor.host.config_tree import Config
from agentvisor.host.guests import Guests
from agentvisor.host.running_agent import AgentEnd
from agentvisor.protocol.v1 import guest_pb2, run_pb2, store_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.descriptions")

MOST_KEPT = 256
AT_A_TIME = 4
"""Processes that are asked; they count to no limit on runs."""
_THREAD = "description"
"""No thread is called so to an agent that is described: it has no store."""

_Key = tuple[str, int, int, bytes]


class Descriptions:
    """Of the agents of one host."""

    def __init__(self, guests: Guests, config: Config) -> None:
        self._guests = guests
        self._config = config
        self._few = asyncio.Semaphore(AT_A_TIME)
        self._kept: dict[_Key, asyncio.Task[bytes]] = {}

    async def describe(self, agent: str, asked: guest_pb2.Description) -> bytes:
        """The answer, as JSON; the same question is asked of the same code once, whoever waits for the answer.

        `AgentBroken` with the traceback of the user's code where that does not load, or raises; `Unavailable` where it
        takes longer than `guest.operation_timeout`, or its guest is lost.
        """
        key = (agent, self._guests.generation, self._changed_ns(agent), asked.SerializeToString())
        asking = self._kept.get(key)
        if asking is None:
            asking = asyncio.create_task(self._asked(agent, asked), name=f"description of {agent}")
            self._kept[key] = asking
            asking.add_done_callback(lambda done: self._forget(key, done))
            for oldest in list(self._kept)[:-MOST_KEPT]:
                del self._kept[oldest]
        return await asyncio.shield(asking)

    async def stop(self) -> None:
        """Give up what is being asked."""
        asking = [*self._kept.values()]
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _forget(self, key: _Key, done: asyncio.Task[bytes]) -> None:
        """A failure is not kept: the next who asks may find the code mended."""
        if done.cancelled() or done.exception() is not None:
            self._kept.pop(key, None)

    def _changed_ns(self, agent: str) -> int:
        """When the agent's own file was changed: a host that does not watch its files loads it anew for each run."""
        place = self._config.agents[agent].entrypoint.rpartition(":")[0]
        try:
            return (self._config.base_dir / Path(place)).stat().st_mtime_ns if place.endswith(".py") else 0
        except OSError:
            return 0

    async def _asked(self, agent: str, asked: guest_pb2.Description) -> bytes:
        task = guest_pb2.AgentTask(
            thread_id=_THREAD,
            run_id=f"{_THREAD}-{uuid4()}",
            attempt=1,
            spec=run_pb2.RunSpec(agent=agent, kind=run_pb2.RUN_KIND_AGENT),
            description=asked,
        )
        async with self._few:
            return _answer(agent, await self._until_end(agent, task))

    async def _until_end(self, agent: str, task: guest_pb2.AgentTask) -> AgentEnd:
        limit = self._config.guest.operation_timeout.total_seconds()
        try:
            async with asyncio.timeout(limit):
                return await self._run(agent, task)
        except TimeoutError:
            raise Unavailable(
                f"agent {agent!r} did not say what it is in {limit:g} s (guest.operation_timeout): what does its code "
                "do when it is imported, or makes its graph?"
            ) from None

    async def _run(self, agent: str, task: guest_pb2.AgentTask) -> AgentEnd:
        # What an agent is by its code is nobody's: no thread is touched.
        running = await self._guests.start_agent(agent, task, _Listener(agent), owner=EVERYONE)
        try:
            return await asyncio.shield(running.ended)
        finally:
            if not running.ended.done():
                running.kill()


class _Listener:
    """What an agent says that is described: its output is logged, and there is no store that it could call."""

    def __init__(self, agent: str) -> None:
        self._log = log.bind(agent=agent)

    async def call(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        raise PermissionRefused(
            f"there is no thread here ({request.WhichOneof('kind')}): this process only says what the agent is"
        )

    def events(self, events: guest_pb2.StreamEvents) -> None:
        """Nobody follows."""

    def log(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: ARG002, FBT001 (AgentHandler.log)
        for line in lines:
            self._log.info("agent_output", stream="stderr" if stderr else "stdout", line=line)


def _answer(agent: str, end: AgentEnd) -> bytes:
    outcome = end.outcome
    if end.ending == run_pb2.ENDING_COMPLETED and outcome is not None:
        return outcome.output
    details: Mapping[str, str] = {"agent": agent}
    if outcome is not None and outcome.error_type:
        if outcome.error_type == InvalidInput.__name__:
            raise InvalidInput(outcome.error_message, **details)
        said = f"{outcome.error_type}: {outcome.error_message}"
        raise AgentBroken(
            f"agent {agent!r} cannot say what it is: {said}\n{outcome.traceback}".rstrip(),
            traceback=outcome.traceback,
            **details,
        )
    if end.ending in (run_pb2.ENDING_AGENT_ERROR, run_pb2.ENDING_COULD_NOT_START, run_pb2.ENDING_AGENT_OUT_OF_MEMORY):
        raise AgentBroken(f"agent {agent!r} cannot say what it is: {end.message}", **details)
    raise Unavailable(f"agent {agent!r} could not say what it is: {end.message or 'its process is gone'}")
