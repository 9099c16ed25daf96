"""One agent as its supervisor sees it: a process, its channel to the host, its output, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from agentvisor.core.errors import AgentVisorError, InvalidInput
from agentvisor.guest import memory_watch, output
from agentvisor.guest.descendants import Descendants
from agentvisor.guest.kernel_kills import KernelKills
from agentvisor.guest.outgoing import Outgoing
from agentvisor.guest.zygote_link import WORKSPACE, AgentStart, Exit, ZygoteGone
from agentvisor.protocol.frames import Frames, frame
from agentvisor.protocol.v1.guest_pb2 import (
    AgentExited,
    AgentLog,
    AgentMessage,
    AgentStarted,
    FromAgent,
    FromGuest,
    StartAgent,
    ToAgent,
)

Launch = Callable[[dict[str, str], Sequence[int]], Awaitable[AgentStart]]
"""Starts an agent process with an environment and three files: its channel, stdout and stderr."""

READ_SIZE = 1 << 18

DRAIN_SECONDS = 2.0
"""For the last bytes of a process that has ended."""

LAST_WORD_SECONDS = 5.0
"""How long an agent may stay after its outcome: a thread that never ends must not hold the run."""

MAX_UNREAD = 64 * 1024 * 1024
"""Bytes of answers that an agent may leave unread before it is taken for stuck."""


@dataclass(frozen=True)
class Memory:
    """What an agent may use, and how to know that the kernel had too little for it."""

    limit: int
    """Bytes; 0: none of ours."""
    kernel_kills: KernelKills


class AgentProcess:
    """Lives from StartAgent to AgentExited; everything that the agent managed to say is passed on in between."""

    def __init__(
        self,
        start: StartAgent,
        say: Callable[[FromGuest], Awaitable[None]],
        *,
        launch: Launch,
        workspace: Path,
        descendants: Descendants,
        log_bytes: int,
        memory: Memory,
    ) -> None:
        self._start = start
        self._say = say
        self._launch = launch
        self._workspace = workspace
        self._descendants = descendants
        self._budget = output.Budget(log_bytes)
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._outgoing = Outgoing(self._ours)
        self._pidfd: int | None = None
        self._stop_grace: float | None = None
        self._memory = memory
        self._out_of_memory = ""
        self._killed = False
        self._reason = ""
        self._timers: list[asyncio.TimerHandle] = []

    async def live(self) -> None:
        """Start the process, and return when it has ended and all is said."""
        try:
            exited = await self._run()
        finally:
            for timer in self._timers:
                timer.cancel()
            if self._pidfd is not None:
                os.close(self._pidfd)
            self._outgoing.close()
            self._ours.close()
            self._theirs.close()
        exited.ticket = self._start.ticket
        await self._say(FromGuest(exited=exited))

    def deliver(self, message: ToAgent) -> None:
        """Write a message to the agent."""
        self._outgoing.write(frame(message.SerializeToString()))
        if self._outgoing.backlog > MAX_UNREAD:
            self._kill("the agent does not read its answers")

    def stop(self, grace_seconds: float) -> None:
        """Ask with SIGTERM, kill after the grace; kill at once where that is 0."""
        if self._pidfd is None:
            self._stop_grace = grace_seconds
        elif grace_seconds > 0:
            self._signal(signal.SIGTERM)
            self._kill_after(grace_seconds, "")
        else:
            self._kill("")

    async def _run(self) -> AgentExited:
        try:
            self.deliver(ToAgent(task=self._start.task))
        except AgentVisorError as error:
            return AgentExited(kind=AgentExited.KIND_COULD_NOT_START, message=error.message)
        stdout, their_stdout = os.pipe()
        stderr, their_stderr = os.pipe()
        pumps = [
            asyncio.create_task(self._pump_channel()),
            asyncio.create_task(self._pump_output(stdout, stderr=False)),
            asyncio.create_task(self._pump_output(stderr, stderr=True)),
        ]
        try:
            try:
                files = [self._theirs.fileno(), their_stdout, their_stderr]
                pid, ended = await self._launch(self._environment(), files)
            except ZygoteGone:
                return AgentExited(kind=AgentExited.KIND_ZYGOTE_GONE, message="the zygote died")
            except OSError as error:
                return AgentExited(kind=AgentExited.KIND_COULD_NOT_START, message=f"the agent's process: {error}")
            finally:
                self._theirs.close()
                os.close(their_stdout)
                os.close(their_stderr)
            await self._say(FromGuest(started=AgentStarted(ticket=self._start.ticket, pid=pid)))
            self._hold(pid)
            watching = asyncio.create_task(self._watch_memory(pid))
            try:
                exited = await self._exit(ended)
            finally:
                watching.cancel()
            # Leftovers hold the pipes open, so they go first.
            await self._descendants.sweep()
            await asyncio.wait(pumps, timeout=DRAIN_SECONDS)
            # Only now: what the channel still held may have broken its rules.
            exited.message = exited.message or self._reason
            return exited
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _exit(self, ended: asyncio.Future[Exit]) -> AgentExited:
        try:
            exit_ = await ended
        except ZygoteGone:
            return AgentExited(kind=AgentExited.KIND_ZYGOTE_GONE, message="the zygote died, and its agents with it")
        if not exit_.killed:
            return AgentExited(kind=AgentExited.KIND_EXITED, code=exit_.code)
        if exit_.code == signal.SIGKILL and not self._killed and self._memory.kernel_kills.rose_lately():
            self._out_of_memory = "the kernel killed the agent: memory ran out"
        if exit_.code == signal.SIGKILL and self._out_of_memory:
            return AgentExited(kind=AgentExited.KIND_OUT_OF_MEMORY, code=exit_.code, message=self._out_of_memory)
        return AgentExited(kind=AgentExited.KIND_KILLED, code=exit_.code)

    async def _watch_memory(self, pid: int) -> None:
        if not self._memory.limit:
            return
        used = await memory_watch.until_over(pid, self._memory.limit)
        if not self._killed:
            self._out_of_memory = (
                f"the agent used {used >> 20} MiB of memory with all that it started, and its limit is "
                f"{self._memory.limit >> 20} MiB (guest.memory_limit)"
            )
        self._kill("")

    def _environment(self) -> dict[str, str]:
        task = self._start.task
        return {
            **self._start.environment,
            "AGENTVISOR_THREAD_ID": task.thread_id,
            "AGENTVISOR_RUN_ID": task.run_id,
            "AGENTVISOR_ATTEMPT": str(task.attempt),
            WORKSPACE: str(self._workspace),
        }

    def _hold(self, pid: int) -> None:
        # By its pidfd a signal reaches this process or none, never one that got its number later.
        with contextlib.suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(pid)
        if self._stop_grace is not None:
            self.stop(self._stop_grace)

    async def _pump_channel(self) -> None:
        loop = asyncio.get_running_loop()
        frames = Frames()
        # Reset: the agent ended with answers unread. All that it said came before that.
        with contextlib.suppress(ConnectionResetError):
            while data := await loop.sock_recv(self._ours, READ_SIZE):
                try:
                    for said in frames.feed(data):
                        message = FromAgent.FromString(said)
                        if message.WhichOneof("kind") == "outcome":
                            self._kill_after(LAST_WORD_SECONDS, "the agent did not end after its outcome")
                        await self._say(FromGuest(message=AgentMessage(ticket=self._start.ticket, message=message)))
                except (InvalidInput, DecodeError) as error:
                    self._kill(f"the agent broke the rules of its channel: {error}")
                    return

    async def _pump_output(self, file: int, *, stderr: bool) -> None:
        async def emit(is_stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001 (output.Emit)
            log = AgentLog(ticket=self._start.ticket, stderr=is_stderr, lines=lines, dropped=dropped)
            await self._say(FromGuest(log=log))

        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(file, "rb", buffering=0)
        )
        try:
            await output.pump(reader, stderr=stderr, budget=self._budget, emit=emit)
        finally:
            transport.close()

    def _kill_after(self, seconds: float, reason: str) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, self._kill, reason))

    def _kill(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._killed = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)
