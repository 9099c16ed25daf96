"""The supervisor's side of the zygote: starts it, asks it for agents, and hears how they ended."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from agentvisor.guest import control
from agentvisor.guest.control import Ended, Fork, Forked, Message, Preload, Ready, Refused
from agentvisor.guest.descendants import Descendants, Exit
from agentvisor.protocol.frames import Frames


class ForkRefused(Exception):
    """The zygote cannot fork safely; start the agent as a new process."""


class ZygoteGone(Exception):
    """The zygote died, and its agents with it."""


class ZygoteLink:
    """One zygote, from its start to its death."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._prepared = asyncio.Event()
        self._ready = False
        self._requests = itertools.count(1)
        self._forks: dict[int, asyncio.Future[tuple[int, asyncio.Future[Exit]]]] = {}
        self._agents: dict[int, asyncio.Future[Exit]] = {}
        self._sending = asyncio.Lock()
        self._reading = asyncio.create_task(self._read(), name="zygote")

    @classmethod
    async def start(cls, descendants: Descendants, preload: Preload, *, working_folder: str) -> ZygoteLink:
        """Start a zygote; it imports in its own time, and `fork` waits for that."""
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
                start_new_session=True,
            )
            descendants.started(process.pid)
            # `Descendants` reaps it; told so, Popen does not.
            process.returncode = 0
        ours.setblocking(False)
        link = cls(ours)
        await link._send(preload)
        return link

    @property
    def gone(self) -> bool:
        """Whether it died."""
        return self._reading.done()

    async def fork(self, environment: dict[str, str], files: Sequence[int]) -> tuple[int, asyncio.Future[Exit]]:
        """Start an agent with these files (channel, stdout, stderr); return its id and its exit to come.

        Raises `ForkRefused` or `ZygoteGone`; the exit too may turn out to be `ZygoteGone`.
        """
        request = next(self._requests)
        self._forks[request] = asked = asyncio.get_running_loop().create_future()
        try:
            await self._prepared.wait()
            if not self._ready:
                # Then the next one would die the same way, and no agent would ever start.
                raise ForkRefused("the zygote died while it prepared itself")
            await self._send(Fork(request, environment), files)
            return await asked
        finally:
            del self._forks[request]

    async def close(self) -> None:
        """Let go of the zygote: it ends its agents and itself."""
        self._link.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _send(self, message: Message, files: Sequence[int] = ()) -> None:
        loop = asyncio.get_running_loop()
        data = control.encode(message)
        async with self._sending:
            try:
                sent = socket.send_fds(self._link, [data], list(files)) if files else 0
                await loop.sock_sendall(self._link, data[sent:])
            except (BlockingIOError, OSError) as error:
                # It reads each request at once; one that does not is stuck or dead.
                raise ZygoteGone from error

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        frames = Frames()
        try:
            while data := await loop.sock_recv(self._link, 65536):
                for message in frames.feed(data):
                    self._handle(control.decode(message))
        except OSError:
            pass
        finally:
            self._prepared.set()
            for waiting in (*self._forks.values(), *self._agents.values()):
                if not waiting.done():
                    waiting.set_exception(ZygoteGone())

    def _handle(self, message: Message) -> None:
        match message:
            case Ready():
                self._ready = True
                self._prepared.set()
            case Forked(request, pid):
                # Now, not when the caller wakes up: the next message may be its end.
                self._agents[pid] = exit_ = asyncio.get_running_loop().create_future()
                if (asked := self._forks.get(request)) is not None and not asked.done():
                    asked.set_result((pid, exit_))
            case Refused(request, reason):
                if (asked := self._forks.get(request)) is not None and not asked.done():
                    asked.set_exception(ForkRefused(reason))
            case Ended(pid, killed, code):
                exit_ = self._agents.pop(pid)
                if not exit_.done():
                    exit_.set_result(Exit(killed, code))
            case _:
                pass
