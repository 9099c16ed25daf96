"""A guest whose supervisor is the test: it says on the real socket whatever the test lets it say."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc
import grpc.aio

from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.guest.host_stream import OPTIONS
from agentvisor.host.guest import Guest
from agentvisor.host.running_agent import AgentHandler, RunningAgent
from agentvisor.protocol.v1.guest_pb2 import (
    AgentExited,
    AgentMessage,
    AgentStarted,
    AgentTask,
    FromAgent,
    FromGuest,
    GuestSetup,
    Hello,
    Outcome,
    StoreCall,
    ToGuest,
)
from agentvisor.protocol.v1.guest_pb2_grpc import GuestHostStub
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

SECONDS = 15.0


class RawGuest:
    """One guest of a host: `start_agent` is the host's side, everything else the supervisor's."""

    def __init__(self, folder: Path, *, key: bytes = b"k" * 32) -> None:
        self.setup = GuestSetup()
        self.guest = Guest("raw", self.setup, ticket_key=key, heartbeat_seconds=60, folder=folder)
        self.tickets: list[str] = []
        """Of the agents that were to be started, in order."""
        self.told: list[ToGuest] = []
        self.opened = asyncio.Event()
        self._changed = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._ids = count(1)
        self._call: Any = None

    async def start_agent(
        self,
        _agent: str,
        task: AgentTask,
        handler: AgentHandler,
        *,
        owner: Owner = EVERYONE,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> RunningAgent:
        del owner  # it is one guest, whoever asks
        return await self.guest.start_agent(task, handler, environment)

    async def stop(self) -> None:
        """As `Guests` of a host that stops; here the context ends the guest."""

    async def ticket(self, number: int) -> str:
        """The ticket of the agent that was started as this one, from 0."""
        async with asyncio.timeout(SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.tickets) > number)
        return self.tickets[number]

    async def ask(self, ticket: str, request: StoreRequest) -> StoreReply:
        """What the host answers an agent's call."""
        number = next(self._ids)
        await self.say(FromAgent(call=StoreCall(id=number, request=request)), ticket)

        def answers() -> list[StoreReply]:
            said = [one.message.message.answer for one in self.told if one.message.message.HasField("answer")]
            return [one.reply for one in said if one.id == number]

        async with asyncio.timeout(SECONDS), self._changed:
            await self._changed.wait_for(answers)
        return answers()[0]

    async def complete(self, ticket: str, output: bytes = b'"late"') -> None:
        """The agent's last word and its end."""
        await self.say(FromAgent(outcome=Outcome(kind=Outcome.KIND_COMPLETED, output=output)), ticket)
        await self.write(FromGuest(exited=AgentExited(ticket=ticket, kind=AgentExited.KIND_EXITED)))

    async def say(self, message: FromAgent, ticket: str) -> None:
        await self.write(FromGuest(message=AgentMessage(ticket=ticket, message=message)))

    async def write(self, message: FromGuest) -> None:
        async with self._writing:
            await self._call.write(message)

    async def refused(self) -> grpc.StatusCode:
        """How the host ended the stream."""
        async with asyncio.timeout(SECONDS):
            return await self._call.code()

    async def live(self) -> None:
        """Speak as the supervisor until the stream ends."""
        async with grpc.aio.insecure_channel(self.setup.address, OPTIONS) as channel:
            self._call = GuestHostStub(channel).Connect()
            await self.write(FromGuest(hello=Hello(guest_id=self.setup.guest_id, token=self.setup.token)))
            self.opened.set()
            while isinstance(message := await self._call.read(), ToGuest):
                if message.WhichOneof("kind") == "start":
                    self.tickets.append(message.start.ticket)
                    await self.write(FromGuest(started=AgentStarted(ticket=message.start.ticket, pid=1)))
                async with self._changed:
                    self.told.append(message)
                    self._changed.notify_all()


@asynccontextmanager
async def raw_guest(folder: Path, *, key: bytes = b"k" * 32) -> AsyncGenerator[RawGuest]:
    """A guest that is connected, while the context lasts."""
    raw = RawGuest(folder, key=key)
    ready = asyncio.Event()

    def sandbox(_setup: GuestSetup, _environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        ready.set()
        return subprocess.Popen(["sleep", "600"])

    running = asyncio.create_task(raw.guest.run(sandbox, {}))
    await asyncio.wait_for(ready.wait(), SECONDS)
    speaking = asyncio.create_task(_quietly(raw))
    try:
        await asyncio.wait_for(raw.opened.wait(), SECONDS)
        await asyncio.wait_for(raw.guest.connected(), SECONDS)
        yield raw
    finally:
        running.cancel()
        speaking.cancel()
        await asyncio.gather(running, speaking, return_exceptions=True)


async def _quietly(raw: RawGuest) -> None:
    try:
        await raw.live()
    except grpc.aio.AioRpcError:
        return  # `refused` says how it ended
