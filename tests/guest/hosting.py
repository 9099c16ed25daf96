"""A host without Temporal: real guests, whose threads are kept in this process and acknowledged at once."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from agentvisor.core.ids import ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_store import AttemptStore
from agentvisor.host.config_tree import Config
from agentvisor.host.door import StoreLimits
from agentvisor.host.guests import AgentEnd, Guests, RunningAgent
from agentvisor.host.journal import Journal, Urgency
from agentvisor.protocol.v1.guest_pb2 import AgentTask, StreamEvents
from agentvisor.protocol.v1.run_pb2 import RunSpec
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

AGENTS = Path(__file__).parent / "agents"
LIMITS = StoreLimits(max_inline_value=1_500_000, max_value=64 << 20, max_state=1 << 30)


class AtOnce:
    """A journal whose commits take no time."""

    def append(self, entries: Iterable[bytes], urgency: Urgency) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def until_fenced(self) -> None:
        """Never asked for: nothing is handed over here."""
        await asyncio.Event().wait()


async def nothing_elsewhere(keys: list[Any]) -> list[Any]:
    return []


class Kept:
    """Handles one attempt of an agent: its thread's store, and all that it said."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.store = AttemptStore(thread, cast("Journal", AtOnce()), nothing_elsewhere, LIMITS)
        self.requests: list[StoreRequest] = []
        self.streamed: list[tuple[str, tuple[str, ...], bytes]] = []
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.dropped = 0
        self.changed = asyncio.Condition()

    async def call(self, request: StoreRequest) -> StoreReply:
        self.requests.append(request)
        await self._tell()
        return await self.store.call(request)

    def events(self, events: StreamEvents) -> None:
        self.streamed += [(event.mode, tuple(event.namespace), event.data) for event in events.events]

    def log(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001
        (self.errors if stderr else self.lines).extend(lines)
        self.dropped += dropped
        self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def printed(self, line: str) -> None:
        """Wait until the agent has printed this line."""
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: line in self.lines)


class Hosting:
    """Starts agents of tests/guest/agents, on threads that outlive their guests."""

    def __init__(self, guests: Guests) -> None:
        self.guests = guests
        self.threads: dict[str, Thread] = {}
        self.folder = Path()

    def thread(self, thread_id: str) -> Thread:
        return self.threads.setdefault(thread_id, Thread(ThreadId(thread_id), 0, 0, True, b""))

    async def start(
        self,
        agent: str,
        *,
        thread: str = "t",
        run: str = "r",
        attempt: int = 1,
        owner: Owner = EVERYONE,
        **spec: Any,
    ) -> tuple[RunningAgent, Kept]:
        kept = Kept(self.thread(thread))
        task = AgentTask(thread_id=thread, run_id=run, attempt=attempt, spec=RunSpec(agent=agent, run_id=run, **spec))
        return await self.guests.start_agent(agent, task, kept, owner=owner), kept

    async def run(self, agent: str, **arguments: Any) -> tuple[AgentEnd, Kept]:
        running, kept = await self.start(agent, **arguments)
        return await asyncio.wait_for(running.ended, 60), kept


def configured(folder: Path, agents: dict[str, Any], start_method: str = "zygote", **guest: Any) -> Config:
    return Config.model_validate(
        {
            "base_dir": folder,
            "agents": agents,
            "guest": {"start_method": start_method, **guest},
            "dev": {"data_dir": folder / "data"},
        }
    )
