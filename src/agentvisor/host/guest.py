"""One guest: its supervisor process, the stream to it, and the agents that run in it."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from uuid import uuid4

import structlog

from agentvisor.core.errors import Conflict, PermissionRefused
from agentvisor.host.guest_folders import ELSEWHERE, guest_folder
from agentvisor.host.guest_metrics import GuestSeen
from agentvisor.host.leftovers import end_leftovers
from agentvisor.host.rpc.guest_stream import GuestStream, served
from agentvisor.host.running_agent import AgentHandler, RunningAgent
from agentvisor.host.sandboxes import Sandbox
from agentvisor.protocol.ticket import RunTicket
from agentvisor.protocol.v1.guest_pb2 import AgentTask, FromGuest, GuestSetup, StartAgent, ToGuest
from agentvisor.protocol.v1.run_pb2 import Ending

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.guest")

MAX_SOCKET_PATH = 107
"""Bytes of a unix socket's path, by the kernel's sockaddr_un."""

CONNECT_SECONDS = 30.0
STOP_SECONDS = 3.0
MISSED_HEARTBEATS = 3


class Guest:
    """Lives as long as `run`; agents can be started from the beginning, they wait until the guest is ready."""

    def __init__(
        self,
        name: str,
        setup: GuestSetup,
        *,
        ticket_key: bytes,
        heartbeat_seconds: float,
        folder: Path,
        idle_seconds: float | None = None,
    ) -> None:
        """`idle_seconds`: after which a guest without agents ends; None: it stays."""
        self.name = name
        self.id = uuid4().hex
        self._setup = setup
        self._setup.guest_id = self.id
        self._setup.token = secrets.token_bytes(32)
        self._ticket_key = ticket_key
        self._heartbeat_seconds = heartbeat_seconds
        self._parent = folder
        self._idle_seconds = idle_seconds
        self._idle_since = monotonic()
        self._stream = GuestStream(self.id, self._setup.token, self._receive)
        self._agents: dict[RunTicket, RunningAgent] = {}
        self._retired = asyncio.Event()
        self._warm = asyncio.Event()
        self._silent_beats = 0
        self._ending: Ending.ValueType = Ending.ENDING_GUEST_GONE
        self._why = "the guest is gone"
        self._seen = GuestSeen(name)
        self.pid = 0

    @property
    def takes_runs(self) -> bool:
        """Whether it will live on after the runs that it has."""
        return not (self._retired.is_set() or self._stream.ended.is_set())

    @property
    def idle_since(self) -> float | None:
        """By the monotonic clock; None: an agent runs in it."""
        return None if self._agents else self._idle_since

    def retire(self) -> None:
        """Take no more runs, and end after the last one."""
        self._retired.set()

    async def start_agent(self, task: AgentTask, handler: AgentHandler, environment: Mapping[str, str]) -> RunningAgent:
        """Start an agent; return when its process runs, or has ended already. Cancelled, it leaves nothing running."""
        ticket = RunTicket.of(task)
        if ticket in self._agents:
            raise Conflict(f"attempt {ticket.attempt} of run {ticket.run_id} runs already")
        signed = ticket.signed(self._ticket_key)
        agent = RunningAgent(ticket, signed, handler, self._stream.send)
        self._agents[ticket] = agent
        self._seen.has(len(self._agents))
        agent.ended.add_done_callback(lambda _: self._ended(ticket))
        sent = False
        try:
            await self.connected()
            self._stream.send(ToGuest(start=StartAgent(ticket=signed, task=task, environment=dict(environment))))
            sent = True
            await agent.started.wait()
        except asyncio.CancelledError:
            # Whoever started it has given it up: nothing of it may be at work when he goes on.
            if sent:
                agent.kill()
                await asyncio.wait([agent.ended], timeout=STOP_SECONDS)
            else:
                agent.guest_ended(Ending.ENDING_CANCELLED, "it was given up before its guest was ready")
            raise
        return agent

    async def run(self, sandbox: Sandbox, environment: Mapping[str, str]) -> None:
        """Start the supervisor; return when it and everything that it started has ended. Raises nothing."""
        self._seen.starts()
        try:
            with guest_folder(self._parent, self.id) as folder, _socket_path(folder) as path:
                self._setup.address = f"unix:{path}"
                self._setup.folder = str(folder)
                async with served(self._setup.address, self._stream):
                    await self._live(sandbox(self._setup, environment))
        except asyncio.CancelledError:
            self._seen.ending = "host_stopped"
            raise
        except Exception as error:
            log.exception("guest_not_started", guest=self.id, agent=self.name)
            self._why = f"the guest could not be started: {error}"
            self._seen.ending = "could_not_start"
        finally:
            self._seen.ended()
            self._stream.ended.set()
            for agent in list(self._agents.values()):
                agent.guest_ended(self._ending, self._why)

    async def connected(self) -> None:
        """Wait until the guest has shown its token, or is gone."""
        if not self._stream.connected.is_set():
            await _first(self._stream.connected.wait(), self._stream.ended.wait())

    async def warm(self) -> None:
        """Wait until agents start at once: what they need was imported; or the guest is gone."""
        await _first(self._warm.wait(), self._stream.ended.wait())

    async def _live(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        exited = asyncio.create_task(_exit(process))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await _first(self._stream.connected.wait(), _shielded(exited))
            if self._stream.connected.is_set():
                self._seen.connected()
            await _first(self._stream.ended.wait(), _shielded(exited), self._silence(), self._spent(), self._idle())
            if self._retired.is_set() and not self._stream.ended.is_set() and not exited.done():
                self._seen.ending = "retired"
            if self._silent_beats > 1 and not exited.done():
                self._found_silent()  # where the host is busy, the transport's ping tells it before the count does
        except TimeoutError:
            self._why = f"the guest did not connect within {CONNECT_SECONDS:.0f} seconds"
        finally:
            await self._end(process, exited)

    async def _end(self, process: subprocess.Popen[bytes], exited: asyncio.Task[int]) -> None:
        """End the supervisor, which ends all others; then whatever a killed supervisor could not."""
        if self._ending == Ending.ENDING_GUEST_UNRESPONSIVE:
            process.kill()
        elif not exited.done():
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(exited), STOP_SECONDS)
        except TimeoutError:
            process.kill()
        await exited
        await asyncio.to_thread(end_leftovers, self.id)

    async def _silence(self) -> None:
        """Return when the guest has said nothing for three heartbeats of the host's own time."""
        while self._silent_beats <= MISSED_HEARTBEATS:
            await asyncio.sleep(self._heartbeat_seconds)
            # Counted in turns of this loop: a host that was busy or frozen has not waited.
            self._silent_beats = self._silent_beats + 1 if self._stream.waiting_for_guest else 0
        self._found_silent()

    def _found_silent(self) -> None:
        if self._ending == Ending.ENDING_GUEST_UNRESPONSIVE:
            return
        self._ending = Ending.ENDING_GUEST_UNRESPONSIVE
        self._seen.ending = "guest_unresponsive"
        self._why = f"the guest was silent for {self._silent_beats} heartbeats, and was killed"
        log.warning("guest_unresponsive", guest=self.id, agent=self.name)

    async def _spent(self) -> None:
        await self._retired.wait()
        while self._agents:
            await asyncio.wait([agent.ended for agent in self._agents.values()])

    def _ended(self, ticket: RunTicket) -> None:
        self._agents.pop(ticket, None)
        self._seen.has(len(self._agents))
        self._idle_since = monotonic()

    async def _idle(self) -> None:
        """Return when there was no agent for so long, having said that none is taken any more."""
        if self._idle_seconds is None:
            await self._stream.ended.wait()
            return
        left = self._idle_seconds
        while self._agents or left > 0:
            if self._agents:
                await asyncio.wait([agent.ended for agent in self._agents.values()])
            else:
                await asyncio.sleep(left)
            left = self._idle_since + self._idle_seconds - monotonic()
        self._retired.set()

    async def _receive(self, message: FromGuest) -> None:
        self._silent_beats = 0
        match message.WhichOneof("kind"):
            case "message":
                await self._agent(message.message.ticket).said(message.message.message)
            case "log":
                said = message.log
                self._agent(said.ticket).printed(said.stderr, list(said.lines), said.dropped)
            case "started":
                agent = self._agent(message.started.ticket)
                agent.pid = message.started.pid
                agent.started.set()
            case "exited":
                self._agent(message.exited.ticket).end(message.exited)
            case "heartbeat":
                if message.heartbeat.warm:
                    self._warm.set()
            case _:
                pass

    def _agent(self, signed: str) -> RunningAgent:
        """The agent of a ticket; a guest that shows another's is not what it was."""
        ticket = RunTicket.verified(signed, self._ticket_key)
        agent = self._agents.get(ticket)
        if agent is None:
            raise PermissionRefused(f"run {ticket.run_id} was not started on guest {self.id}")
        return agent


@contextmanager
def _socket_path(folder: Path) -> Generator[Path]:
    """Where a guest's socket can be: in its folder, or where that is too long for the kernel, in a temporary one."""
    wanted = folder / "host.sock"
    if len(os.fsencode(wanted)) <= MAX_SOCKET_PATH:
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="agentvisor-", ignore_cleanup_errors=True) as temporary:
        # A host that is killed leaves both folders; who clears the one finds the other by this link.
        (folder / ELSEWHERE).symlink_to(temporary)
        yield Path(temporary) / "host.sock"


async def _exit(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child without a thread where the kernel can say when."""
    if sys.platform != "linux":
        return await asyncio.to_thread(process.wait)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    pidfd = os.pidfd_open(process.pid)
    try:
        loop.add_reader(pidfd, ended.set)
        await ended.wait()
        return process.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


async def _first(*waits: Coroutine[object, object, object]) -> None:
    """Return when one of these has; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _shielded(task: asyncio.Task[int]) -> None:
    await asyncio.shield(task)
