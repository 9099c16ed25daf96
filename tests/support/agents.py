"""Agents that are coroutines of the test, in the place of processes in a guest; everything else about them is real."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from agentvisor.core.owners import Owner
from agentvisor.host.running_agent import AgentHandler, RunningAgent
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.ticket import RunTicket
from agentvisor.protocol.v1.guest_pb2 import AgentExited, AgentTask, FromAgent, Outcome, ToGuest
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

SIGKILL = 9


class ScriptedAgent:
    """What a script does as an agent."""

    def __init__(self, task: AgentTask, handler: AgentHandler) -> None:
        self.task = task
        self.attempt = task.attempt
        self.cancelled = asyncio.Event()
        """The host asked the agent to end."""
        self._handler = handler

    async def call(self, request: StoreRequest) -> StoreReply:
        """A store call; an error of ours is raised."""
        reply = await self._handler.call(request)
        if reply.WhichOneof("kind") == "error":
            raise from_error(reply.error)
        return reply


Script = Callable[[ScriptedAgent], Awaitable[object]]


class ScriptedGuests:
    """Agents by name; a script that returns has completed, one that raises has failed, unless it was killed.

    What it returns may be its last word: an `Outcome`.
    """

    def __init__(self, **scripts: Script) -> None:
        self.scripts = scripts
        self.started: list[tuple[str, int]] = []
        """Runs and attempts, in order."""
        self.owners: list[Owner] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start_agent(
        self,
        agent: str,
        task: AgentTask,
        handler: AgentHandler,
        *,
        owner: Owner,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> RunningAgent:
        self.owners.append(owner)
        script = ScriptedAgent(task, handler)
        holder: list[asyncio.Task[None]] = []

        def send(message: ToGuest) -> None:
            if message.WhichOneof("kind") == "stop":
                holder[0].cancel()
            elif message.message.message.HasField("cancel"):
                script.cancelled.set()

        running = RunningAgent(RunTicket.of(task), "ticket", handler, send)
        running.pid = 1
        self.started.append((task.run_id, task.attempt))
        holder.append(asyncio.create_task(self._run(self.scripts[agent], script, running)))
        self._tasks.add(holder[0])
        holder[0].add_done_callback(self._tasks.discard)
        return running

    async def _run(self, script: Script, agent: ScriptedAgent, running: RunningAgent) -> None:
        exited = AgentExited(kind=AgentExited.KIND_EXITED)
        try:
            said = await script(agent)
            outcome = said if isinstance(said, Outcome) else Outcome(kind=Outcome.KIND_COMPLETED, output=b"null")
            await running.said(FromAgent(outcome=outcome))
        except asyncio.CancelledError:
            exited = AgentExited(kind=AgentExited.KIND_KILLED, code=SIGKILL)
        except Exception as error:  # noqa: BLE001 - as in a guest: whatever the agent raises is its end
            outcome = Outcome(kind=Outcome.KIND_FAILED, error_type=type(error).__name__, error_message=str(error))
            await running.said(FromAgent(outcome=outcome))
            exited = AgentExited(kind=AgentExited.KIND_EXITED, code=1)
        running.end(exited)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Guided:
    """Stays alive until it is let go; the test writes through it."""

    def __init__(self) -> None:
        self.agents = list[ScriptedAgent]()
        self.ready = asyncio.Event()
        self.leave = asyncio.Event()
        self.killed = 0
        self.guests = ScriptedGuests(agent=self._live)

    async def _live(self, agent: ScriptedAgent) -> None:
        self.agents.append(agent)
        self.ready.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            self.killed += 1
            raise

    @property
    def now(self) -> ScriptedAgent:
        return self.agents[-1]
