"""The supervisor's side of the zygote: starts it, asks it for agents, and hears how they ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentvisor.guest import control
from agentvisor.guest.control import Ended, Failed, Message, Ping, Prepare, Ready, Start, Started
from agentvisor.guest.descendants import Descendants
from agentvisor.guest.family import kill
from agentvisor.protocol.frames import Frames

WORKSPACE = "AGENTVISOR_WORKSPACE"
"""The variable that names a folder in which a process may leave what is to go with it."""

BEAT_SECONDS = 1.0
MISSED_BEATS = 10
"""A zygote that serves answers in milliseconds; on a machine that is overloaded, in seconds."""


class Exit(NamedTuple):
    """What waitid says: an exit code, or the number of the signal that killed it."""

    killed: bool
    code: int


class AgentStart(NamedTuple):
    """An agent process that runs."""

    pid: int
    ended: asyncio.Future[Exit]
    """Raises `ZygoteGone` where nobody will ever know how it ended."""


class ZygoteGone(Exception):
    """The zygote died, and its agents with it."""


class ZygoteLink:
    """One zygote, from its start to its death."""

    def __init__(self, link: socket.socket, pid: int, reaped: asyncio.Future[None]) -> None:
        self._link = link
        self._pid = pid
        self._reaped = reaped
        self.gone = False
        """Whether it died."""
        self._prepared = asyncio.Event()
        self.was_ready = False
        """Whether it got through its imports."""
        self._requests = itertools.count(1)
        self._starting: dict[int, asyncio.Future[AgentStart]] = {}
        self._agents: dict[int, asyncio.Future[Exit]] = {}
        self._sending = asyncio.Lock()
        self._heard = False
        self._reading = asyncio.create_task(self._read(), name="zygote")
        self._watching = asyncio.create_task(self._watch(), name="zygote's pulse")

    @classmethod
    async def start(
        cls, descendants: Descendants, prepare: Prepare, *, working_folder: str, workspace: Path
    ) -> ZygoteLink:
        """Start a zygote; it imports in its own time, and `start_agent` waits for that."""
        ours, theirs = socket.socketpair()
        with theirs:
            # Nothing but this number and a process id is in its arguments, and nothing of ours in its memory.
            process = subprocess.Popen(  # noqa: ASYNC220 (it returns once the process exists)
                [sys.executable, "-P", "-m", "agentvisor.guest.zygote", str(os.getpid()), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=working_folder or None,
                env={**os.environ, WORKSPACE: str(workspace)},
                start_new_session=True,
            )
            reaped = descendants.started(process.pid)
            # `Descendants` reaps it; told so, Popen does not.
            process.returncode = 0
        ours.setblocking(False)
        link = cls(ours, process.pid, reaped)
        await link._send(prepare)
        return link

    async def prepared(self) -> None:
        """Return once it has imported what agents need, or is gone."""
        await self._prepared.wait()

    async def start_agent(self, environment: dict[str, str], files: Sequence[int], *, fork: bool) -> AgentStart:
        """Start an agent with these files: channel, stdout, stderr. Raises `ZygoteGone` or OSError."""
        request = next(self._requests)
        self._starting[request] = asked = asyncio.get_running_loop().create_future()
        try:
            await self._prepared.wait()
            if self.gone:
                raise ZygoteGone
            await self._send(Start(request, environment, fork), files)
            return await asked
        finally:
            del self._starting[request]

    async def _send(self, message: Message, files: Sequence[int] = ()) -> None:
        loop = asyncio.get_running_loop()
        data = control.encode(message)
        async with self._sending:
            try:
                # The files travel with the first bytes.
                sent = socket.send_fds(self._link, [data], list(files)) if files else 0
                await loop.sock_sendall(self._link, data[sent:])
            except OSError as error:
                # It reads each request at once; one that does not is stuck or dead.
                raise ZygoteGone from error

    async def _watch(self) -> None:
        """Kill the zygote once it is silent for long: of one that is frozen, no start and no end would be heard."""
        # Its imports may take as long as they like.
        await self._prepared.wait()
        silent = 0
        ping: asyncio.Task[None] | None = None
        while not self.gone and silent < MISSED_BEATS:
            if silent == 0:
                self._heard = False
                # Not awaited: it may be behind a message that a frozen zygote does not read to its end.
                ping = ping if ping and not ping.done() else asyncio.create_task(self._ping())
            await asyncio.sleep(BEAT_SECONDS)
            # Counted in turns of this loop: a supervisor that was frozen itself has not waited.
            silent = 0 if self._heard else silent + 1
        if not self.gone and not self._reaped.done():
            print("agentvisor: the zygote does not answer, and is killed", file=sys.stderr)  # noqa: T201 (as below)
            kill(self._pid)

    async def _ping(self) -> None:
        with contextlib.suppress(ZygoteGone):
            await self._send(Ping())

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        frames = Frames()
        try:
            while data := await loop.sock_recv(self._link, 65536):
                self._heard = True
                for message in frames.feed(data):
                    self._handle(control.decode(message))
        except OSError:
            pass
        finally:
            self.gone = True
            self._watching.cancel()
            self._link.close()
            # Its agents are found, to be ended with all that they started, once they were adopted: after its end.
            if not self._reaped.done():
                kill(self._pid)
            await asyncio.shield(self._reaped)
            self._prepared.set()
            for waiting in (*self._starting.values(), *self._agents.values()):
                if not waiting.done():
                    waiting.set_exception(ZygoteGone())

    def _handle(self, message: Message) -> None:
        match message:
            case Ready():
                self.was_ready = True
                self._prepared.set()
            case Started(request, pid, note):
                if note:
                    print(f"agentvisor: {note}", file=sys.stderr)  # noqa: T201 (the supervisor's log)
                # Now, not when the caller wakes up: the next message may be its end.
                self._agents[pid] = ended = asyncio.get_running_loop().create_future()
                self._answer(request, AgentStart(pid, ended))
            case Failed(request, reason):
                self._answer(request, OSError(reason))
            case Ended(pid, killed, code):
                ended = self._agents.pop(pid)
                if not ended.done():
                    ended.set_result(Exit(killed, code))
            case _:
                pass

    def _answer(self, request: int, answer: AgentStart | OSError) -> None:
        asked = self._starting.get(request)
        if asked is None or asked.done():
            return
        if isinstance(answer, OSError):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)
