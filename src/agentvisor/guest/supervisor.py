"""The supervisor: the guest's end of the stream to the host, and the parent of everything in the guest.

It holds the token, never imports an agent's code, and ends the whole guest when the host is gone.
`python -m agentvisor.guest.supervisor HOST_PID`, with a GuestSetup on standard input.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from agentvisor.guest.agent_process import AgentProcess, Memory
from agentvisor.guest.control import Prepare
from agentvisor.guest.descendants import Descendants
from agentvisor.guest.family import adopt_orphans, die_with_parent, hide_memory
from agentvisor.guest.kernel_kills import KernelKills
from agentvisor.guest.zygote_link import AgentStart, ZygoteGone, ZygoteLink
from agentvisor.protocol.guest_mark import bear_mark
from agentvisor.protocol.v1.guest_pb2 import FromGuest, GuestHeartbeat, GuestSetup, Hello, StartAgent, ToGuest

HEARTBEAT_SECONDS = 1.0
OUTBOX = 64
"""Messages that may wait for the host; then the agents' channels wait too."""


def main() -> None:
    """Be a guest until the host ends the stream or dies."""
    die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    hide_memory()
    adopt_orphans()
    setup = GuestSetup.FromString(sys.stdin.buffer.read())
    bear_mark(setup.guest_id)
    asyncio.run(Supervisor(setup).run())


class Supervisor:
    """All agents of one guest."""

    def __init__(self, setup: GuestSetup) -> None:
        self._setup = setup
        self._descendants = Descendants()
        self._kernel_kills = KernelKills()
        self._zygote: ZygoteLink | None = None
        self._warming = asyncio.Lock()
        self._warm = False
        self._outbox: asyncio.Queue[FromGuest] = asyncio.Queue(OUTBOX)
        self._agents: dict[str, AgentProcess] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Speak with the host until it is gone; then leave nothing alive."""
        self._descendants.watch()
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        try:
            # First of all, since it takes longest to be ready.
            await self._warm_zygote()
            stream = asyncio.create_task(self._speak())
            stopped = asyncio.create_task(stopping.wait())
            await asyncio.wait([stream, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in (stream, stopped, *self._lives):
                task.cancel()
            await asyncio.gather(stream, stopped, *self._lives, return_exceptions=True)
        finally:
            await self._descendants.end_all()

    async def _speak(self) -> None:
        # The zygote imports beside this, and gRPC is not for it.
        from agentvisor.guest.host_stream import HostStream

        async with HostStream(self._setup.address) as stream:
            await stream.write(
                FromGuest(hello=Hello(guest_id=self._setup.guest_id, token=self._setup.token, pid=os.getpid()))
            )
            writing = asyncio.create_task(self._write(stream.write))
            beating = asyncio.create_task(self._beat())
            warming = asyncio.create_task(self._say_when_warm())
            try:
                while (message := await stream.read()) is not None:
                    self._handle(message)
            finally:
                for task in (writing, beating, warming):
                    task.cancel()

    async def _write(self, write: Callable[[FromGuest], Awaitable[None]]) -> None:
        while True:
            await write(await self._outbox.get())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + HEARTBEAT_SECONDS
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self._kernel_kills.sample()
            lag = max(0, round((loop.time() - due) * 1000))
            await self._say_alive(lag)

    async def _say_when_warm(self) -> None:
        await (await self._warm_zygote()).prepared()
        # Or it died of its imports: the next one has none, and is as warm as it gets.
        self._warm = True
        await self._say_alive(0)

    async def _say_alive(self, lag_ms: int) -> None:
        beat = GuestHeartbeat(lag_ms=lag_ms, agents=len(self._agents), warm=self._warm)
        await self._outbox.put(FromGuest(heartbeat=beat))

    def _handle(self, message: ToGuest) -> None:
        match message.WhichOneof("kind"):
            case "start":
                life = asyncio.create_task(self._live(message.start))
                self._lives.add(life)
                life.add_done_callback(self._lives.discard)
            case "message":
                if (agent := self._agents.get(message.message.ticket)) is not None:
                    agent.deliver(message.message.message)
            case "stop":
                if (agent := self._agents.get(message.stop.ticket)) is not None:
                    agent.stop(message.stop.grace_ms / 1000)
            case _:
                # A newer host may say more.
                pass

    async def _live(self, start: StartAgent) -> None:
        workspace = self._workspace(f"agent-{next(self._numbers)}")
        agent = AgentProcess(
            start,
            self._outbox.put,
            launch=self._launch,
            workspace=workspace,
            descendants=self._descendants,
            log_bytes=self._setup.log_bytes_per_run,
            memory=Memory(self._setup.memory_limit, self._kernel_kills),
        )
        self._agents[start.ticket] = agent
        try:
            await agent.live()
        finally:
            del self._agents[start.ticket]
            if workspace.exists():
                # An agent that was killed or cancelled has cleared nothing itself.
                await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)

    def _workspace(self, name: str) -> Path:
        """Where one process may leave what is to go with it; whoever puts something there makes it."""
        return Path(self._setup.folder, name).absolute()

    async def _launch(self, environment: dict[str, str], files: Sequence[int]) -> AgentStart:
        fork = self._setup.start_method == "zygote"
        zygote = await self._warm_zygote()
        try:
            return await zygote.start_agent(environment, files, fork=fork)
        except ZygoteGone:
            if zygote.was_ready:
                raise
            # It died of its imports. The next has none.
            zygote = await self._warm_zygote()
            return await zygote.start_agent(environment, files, fork=fork)

    async def _warm_zygote(self) -> ZygoteLink:
        """The zygote, a new one where the last is gone. In "exec" too: it is the parent that knows how agents end."""
        async with self._warming:
            if self._zygote is None or self._zygote.gone:
                # What the last one died of, the next would die of too, and no agent would ever start.
                imports = self._setup.start_method == "zygote" and (self._zygote is None or self._zygote.was_ready)
                prepare = Prepare(
                    modules=list(self._setup.preload) if imports else [],
                    entrypoint=self._setup.preload_entrypoint if imports else "",
                    search_path=list(self._setup.search_path),
                )
                self._zygote = await ZygoteLink.start(
                    self._descendants,
                    prepare,
                    working_folder=self._setup.working_folder,
                    workspace=self._workspace("zygote"),
                )
            return self._zygote


if __name__ == "__main__":
    main()
