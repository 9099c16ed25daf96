"""Between a guest and its host, on the stream that they have anyway: notes what passes, and lets faults happen there.

To the guest it is the host, to the host the guest. What one agent says passes in order, and so does what it is told;
agents do not wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from agentvisor.guest.host_stream import HostStream
from agentvisor.protocol.v1.guest_pb2 import FromGuest, StartAgent, ToGuest
from agentvisor.protocol.v1.guest_pb2_grpc import GuestHostServicer
from agentvisor.protocol.v1.store_pb2 import StoreRequest
from agentvisor.testing.acts import Victims, carry_out
from agentvisor.testing.faults import When
from agentvisor.testing.lanes import Lanes
from agentvisor.testing.record import Operation, Record


@dataclass(slots=True)
class _Agent:
    """One agent, from its start to its end."""

    record: Record
    run_id: str
    attempt: int
    victims: Victims
    gone: bool = False
    """It was killed: what it may still have said on its way down is not passed on."""
    open_calls: dict[int, StoreRequest] = field(default_factory=dict[int, StoreRequest])


class GuestProxy(GuestHostServicer):
    """Serves one guest, at `host_address` for the host."""

    def __init__(self, host_address: str, records: Path, *, temporal_parent: int) -> None:
        self._host_address = host_address
        self._records = records
        self._temporal_parent = temporal_parent
        self._guest_pid = 0
        self._agents: dict[str, _Agent] = {}
        """By ticket."""
        self.ended = asyncio.Event()

    async def Connect(  # pyright: ignore[reportIncompatibleMethodOverride] # noqa: N802 (gRPC's name)
        self,
        request_iterator: AsyncIterator[FromGuest],
        context: grpc.aio.ServicerContext[FromGuest, ToGuest],
    ) -> None:
        """Serve the guest; called by gRPC. When either end is gone, so is this."""
        del request_iterator
        try:
            await self._carry(context)
        finally:
            self.ended.set()

    async def _carry(self, context: grpc.aio.ServicerContext[FromGuest, ToGuest]) -> None:
        async with HostStream(self._host_address) as host:
            up: Lanes[FromGuest] = Lanes(self._from_guest, host.write)
            down: Lanes[ToGuest] = Lanes(self._to_guest, context.write)

            async def from_guest() -> None:
                while True:
                    message = await context.read()
                    if not isinstance(message, FromGuest):  # pyright: ignore[reportUnnecessaryIsInstance]
                        return
                    await up.put(_ticket_up(message), message)

            async def from_host() -> None:
                while (message := await host.read()) is not None:
                    await down.put(_ticket_down(message), message)

            reading = [asyncio.ensure_future(one) for one in (from_guest(), from_host())]
            try:
                await asyncio.wait([*reading, up.failed, down.failed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, up.close(), down.close(), return_exceptions=True)

    async def _from_guest(self, message: FromGuest) -> bool:
        """Whether it is passed on."""
        if message.HasField("hello"):
            self._guest_pid = message.hello.pid
        agent = self._agents.get(_ticket_up(message))
        if agent is None:
            return True
        match message.WhichOneof("kind"):
            case "started":
                agent.victims.agent = message.started.pid
                await self._pass(agent, "after", "start")
            case "exited":
                # Only its parent knows how it ended: this is always passed on.
                self._agents.pop(_ticket_up(message))
            case "message" if not agent.gone:
                await self._said(agent, message)
            case _:
                pass
        return not agent.gone or not message.HasField("message")

    async def _said(self, agent: _Agent, message: FromGuest) -> None:
        said = message.message.message
        if said.HasField("outcome"):
            await self._pass(agent, "before", "outcome")
        if said.HasField("call"):
            request = said.call.request
            agent.open_calls[said.call.id] = request
            await self._pass(agent, "before", str(request.WhichOneof("kind")), _about(request))

    async def _to_guest(self, message: ToGuest) -> bool:
        if message.HasField("start"):
            agent = self._agents[message.start.ticket] = self._begin(message.start)
            await self._pass(agent, "before", "start")
            return True
        agent = self._agents.get(_ticket_down(message))
        if agent is None or not message.HasField("message") or not message.message.message.HasField("answer"):
            return True
        answer = message.message.message.answer
        request = agent.open_calls.pop(answer.id, None)
        if request is not None and not answer.reply.HasField("error"):
            await self._pass(agent, "after", str(request.WhichOneof("kind")), _about(request))
        return not agent.gone

    def _begin(self, start: StartAgent) -> _Agent:
        task = start.task
        victims = Victims(guest=self._guest_pid, temporal_parent=self._temporal_parent)
        return _Agent(Record(self._records, task.thread_id), task.run_id, task.attempt, victims)

    async def _pass(self, agent: _Agent, when: When, name: str, about: dict[str, object] | None = None) -> None:
        """Note that an operation is here, and let happen what is to happen now."""
        for armed in agent.record.note(Operation(when, name, agent.run_id, agent.attempt, about or {})):
            agent.record.fired(armed)
            agent.gone = await carry_out(armed.fault, agent.victims) or agent.gone


def _ticket_up(message: FromGuest) -> str:
    match message.WhichOneof("kind"):
        case "started":
            return message.started.ticket
        case "message":
            return message.message.ticket
        case "exited":
            return message.exited.ticket
        case "log":
            return message.log.ticket
        case _:
            return ""


def _ticket_down(message: ToGuest) -> str:
    match message.WhichOneof("kind"):
        case "start":
            return message.start.ticket
        case "message":
            return message.message.ticket
        case "stop":
            return message.stop.ticket
        case _:
            return ""


def _about(request: StoreRequest) -> dict[str, object]:
    match request.WhichOneof("kind"):
        case "put":
            checkpoint = request.put.checkpoint
            step = (
                int(checkpoint.metadata.fields["step"].number_value) if "step" in checkpoint.metadata.fields else None
            )
            return {"checkpoint_id": checkpoint.checkpoint_id, "namespace": checkpoint.namespace, "step": step}
        case "put_writes":
            writes = request.put_writes
            return {
                "checkpoint_id": writes.checkpoint_id,
                "namespace": writes.namespace,
                "task_id": writes.task_id,
                "channels": [write.channel for write in writes.writes],
            }
        case "effect":
            return {"key": request.effect.key}
        case _:
            return {}
