"""One agent as the host sees it: its calls on the way in, answers on the way out, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from agentvisor.core.errors import AgentVisorError, Internal, PermissionRefused
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.ticket import RunTicket
from agentvisor.protocol.v1.guest_pb2 import (
    AgentExited,
    CancelAgent,
    DrainAgent,
    FromAgent,
    HostMessage,
    Outcome,
    StopAgent,
    StoreAnswer,
    StoreCall,
    StreamEvents,
    ToAgent,
    ToGuest,
)
from agentvisor.protocol.v1.run_pb2 import Ending
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.guest")

MAX_OPEN_CALLS = 256
"""Calls of one agent that wait for an answer; past it, its guest is read no further."""

KILL_AFTER_TERM_MS = 1000
"""An agent that was asked to stop by SIGTERM has this long until SIGKILL."""


class AgentHandler(Protocol):
    """What the host does with what one agent says."""

    async def call(self, request: StoreRequest) -> StoreReply:
        """Answer a call. Calls are started in the order in which the agent made them, up to their first await."""
        ...

    def events(self, events: StreamEvents) -> None:
        """Take events for the run's readers."""
        ...

    def log(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001
        """Take lines that the agent printed, escaped, and how many bytes were dropped."""
        ...


@dataclass(frozen=True)
class AgentEnd:
    """How an agent ended, and its last word if it had one."""

    ending: Ending.ValueType
    code: int = 0
    """Exit code, or number of the signal."""
    message: str = ""
    outcome: Outcome | None = None


class RunningAgent:
    """An agent in a guest. `ended` is set once nothing of it is alive any more and all that it said was handled."""

    def __init__(self, ticket: RunTicket, signed: str, handler: AgentHandler, send: Callable[[ToGuest], None]) -> None:
        self.ticket = ticket
        self.pid = 0
        """Its process, once that was started."""
        self.started = asyncio.Event()
        self.ended: asyncio.Future[AgentEnd] = asyncio.get_running_loop().create_future()
        self._signed = signed
        self._handler = handler
        self._send = send
        self._outcome: Outcome | None = None
        self._cancelled = self._draining = False
        self._slots = asyncio.Semaphore(MAX_OPEN_CALLS)
        self._calls: set[asyncio.Task[None]] = set()

    def cancel(self, grace_seconds: float) -> None:
        """Ask the agent to end; after the grace its process gets SIGTERM, a second later SIGKILL."""
        if self.ended.done() or self._cancelled:
            return
        self._cancelled = True
        self._tell(ToAgent(cancel=CancelAgent()))
        asyncio.get_running_loop().call_later(grace_seconds, self._stop, KILL_AFTER_TERM_MS)

    def drain(self) -> None:
        """Ask the agent to end between two of its steps, if it can, so that the run goes on elsewhere."""
        self._draining = True
        self._tell(ToAgent(drain=DrainAgent()))

    def kill(self) -> None:
        """End the agent's process at once, by SIGKILL; it ends as cancelled unless its last word was already said."""
        self._cancelled = True
        self._stop(0)

    async def said(self, message: FromAgent) -> None:
        """Handle a message of the agent; waits while too many of its calls are open."""
        match message.WhichOneof("kind"):
            case "call":
                await self._slots.acquire()
                # asyncio starts tasks in the order in which they are made: so calls reach the journal in order.
                task = asyncio.create_task(self._answer(message.call))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            case "events":
                self._handler.events(message.events)
            case "outcome":
                # Making way costs no restart: nobody does so who was not asked.
                if message.outcome.kind != Outcome.KIND_DRAINED or self._draining:
                    self._outcome = self._outcome or message.outcome
            case _:
                # An agent of a newer SDK may say more.
                pass

    def printed(self, stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001 (AgentHandler.log)
        """Pass on what the agent printed."""
        self._handler.log(stderr, lines, dropped)

    def end(self, exited: AgentExited) -> None:
        """Its parent's word: nothing of it is alive."""
        self._end(judged(exited, self._outcome, cancelled=self._cancelled))

    def guest_ended(self, ending: Ending.ValueType, message: str) -> None:
        """The guest is gone, and the agent with it."""
        self._end(AgentEnd(ending, message=message))

    def _end(self, end: AgentEnd) -> None:
        self.started.set()
        if not self.ended.done():
            self.ended.set_result(end)

    async def _answer(self, call: StoreCall) -> None:
        try:
            reply = await self._reply(call.request)
        finally:
            self._slots.release()
        self._tell(ToAgent(answer=StoreAnswer(id=call.id, reply=reply)))

    async def _reply(self, request: StoreRequest) -> StoreReply:
        try:
            if request.thread_id and request.thread_id != self.ticket.thread_id:
                raise PermissionRefused(
                    f"this run belongs to thread {self.ticket.thread_id}: it may not use thread {request.thread_id}"
                )
            return await self._handler.call(request)
        except AgentVisorError as error:
            return StoreReply(error=to_error(error))
        except Exception:
            log.exception("call_failed", thread=self.ticket.thread_id, run=self.ticket.run_id)
            return StoreReply(error=to_error(Internal("the host failed to answer; its log says why")))

    def _tell(self, message: ToAgent) -> None:
        if not self.ended.done():
            self._send(ToGuest(message=HostMessage(ticket=self._signed, message=message)))

    def _stop(self, grace_ms: int) -> None:
        if not self.ended.done():
            self._send(ToGuest(stop=StopAgent(ticket=self._signed, grace_ms=grace_ms)))


_OUTCOMES: dict[Outcome.Kind.ValueType, Ending.ValueType] = {
    Outcome.KIND_COMPLETED: Ending.ENDING_COMPLETED,
    Outcome.KIND_PAUSED: Ending.ENDING_PAUSED,
    Outcome.KIND_CANCELLED: Ending.ENDING_CANCELLED,
    Outcome.KIND_FAILED: Ending.ENDING_AGENT_ERROR,
    Outcome.KIND_COULD_NOT_LOAD: Ending.ENDING_COULD_NOT_START,
    Outcome.KIND_DRAINED: Ending.ENDING_HOST_STOPPED,
    Outcome.KIND_UNSPECIFIED: Ending.ENDING_AGENT_ERROR,
}

_FINAL = {Outcome.KIND_COMPLETED, Outcome.KIND_PAUSED}
"""Said after everything was acknowledged: how the process ends after that changes nothing."""


def judged(exited: AgentExited, outcome: Outcome | None, *, cancelled: bool) -> AgentEnd:
    """Say how an agent ended, from its parent's word, its own, and whether it was told to end. Total."""
    if outcome is not None and outcome.kind in _FINAL:
        return AgentEnd(_OUTCOMES[outcome.kind], exited.code, exited.message, outcome)
    if cancelled:
        return AgentEnd(Ending.ENDING_CANCELLED, exited.code, exited.message, outcome)
    if outcome is not None:
        ending = _OUTCOMES.get(outcome.kind, Ending.ENDING_AGENT_ERROR)
        return AgentEnd(ending, exited.code, outcome.error_message, outcome)
    match exited.kind:
        case AgentExited.KIND_EXITED if exited.code == 0:
            # Its code says success, but of what? os._exit(0), another program in its place, a last word that was lost.
            message = exited.message or "the agent's process ended with code 0 before the agent had returned"
            return AgentEnd(Ending.ENDING_AGENT_ERROR, message=message)
        case AgentExited.KIND_EXITED:
            message = exited.message or f"the agent exited with code {exited.code}"
            return AgentEnd(Ending.ENDING_AGENT_ERROR, exited.code, message)
        case AgentExited.KIND_KILLED:
            message = exited.message or f"the agent was killed by signal {exited.code}"
            return AgentEnd(Ending.ENDING_AGENT_SIGNAL, exited.code, message)
        case AgentExited.KIND_OUT_OF_MEMORY:
            return AgentEnd(Ending.ENDING_AGENT_OUT_OF_MEMORY, exited.code, exited.message)
        case AgentExited.KIND_COULD_NOT_START:
            return AgentEnd(Ending.ENDING_COULD_NOT_START, exited.code, exited.message)
        case _:
            # The zygote died, and with it every agent that it had forked.
            return AgentEnd(Ending.ENDING_GUEST_GONE, exited.code, exited.message)
