"""A line of bytes between two processes, which a test delays, holds, deafens, doubles and cuts."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agentvisor.protocol.guest_mark import mark_of, marked

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]

_CHUNK = 1 << 16
_LOOK = 0.002
"""Seconds between two looks for a guest's socket: it is there for a tenth of a second before the guest is."""


class Line:
    """Passes on what comes; "up" is towards the one who listens, "down" are its replies."""

    def __init__(self, connect: Connect) -> None:
        self.connections = 0
        self.delay = 0.0
        """Seconds before each piece goes on."""
        self.refuses = False
        """New connections are closed at once."""
        self.loses_replies = False
        self.lost = 0
        """Bytes of replies that were thrown away."""
        self.doubles = False
        """What goes up goes up once more, on a connection of its own."""
        self.cuts_requests = False
        """The next piece on its way up cuts its connection instead."""
        self.flows_up, self.flows_down = asyncio.Event(), asyncio.Event()
        self._connect = connect
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.mend()

    def mend(self) -> None:
        """Nothing is done to what comes from now on."""
        self.delay, self.refuses, self.loses_replies, self.doubles, self.cuts_requests = 0.0, False, False, False, False
        self.flows_up.set()
        self.flows_down.set()

    def hang(self) -> None:
        """Nothing goes on until `mend`."""
        self.flows_up.clear()
        self.flows_down.clear()

    def cut(self) -> None:
        """End all connections; what was on its way is lost."""
        for writer in self._open:
            writer.transport.abort()

    async def close(self) -> None:
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        ends = [writer]
        try:
            if self.refuses:
                return
            uppers = [await self._connect() for _ in range(2 if self.doubles else 1)]
            ends += [up[1] for up in uppers]
            self._open |= {*ends}
            pumps = [asyncio.create_task(self._up(reader, [up[1] for up in uppers]))]
            pumps += [
                asyncio.create_task(self._down(up[0], writer if at == 0 else None)) for at, up in enumerate(uppers)
            ]
            try:
                await asyncio.wait(pumps[:2], return_when=asyncio.FIRST_COMPLETED)
                if len(uppers) > 1:  # what was doubled is done to the end
                    await asyncio.wait(pumps[2:], timeout=5)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            return
        finally:
            for end in ends:
                self._open.discard(end)
                end.close()

    async def _up(self, reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter]) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if self.cuts_requests:
                    self.cuts_requests = False
                    return
                await asyncio.sleep(self.delay)
                await self.flows_up.wait()
                for writer in writers:
                    writer.write(data)
                    await writer.drain()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await asyncio.sleep(self.delay)
                await self.flows_down.wait()
                if self.loses_replies:
                    self.lost += len(data)
                elif writer is not None:
                    writer.write(data)
                    await writer.drain()


@asynccontextmanager
async def tcp_line(target: Callable[[], Awaitable[int]]) -> AsyncGenerator[tuple[Line, str]]:
    """A line to a port of this machine, which is asked for at each connection; and the URL where it listens."""

    async def connect() -> Streams:
        return await asyncio.open_connection("127.0.0.1", await target())

    line = Line(connect)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    try:
        yield line, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await line.close()


class GuestLines:
    """Stands between guests and their hosts: takes the place of each guest's socket before the guest connects."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[Path, tuple[Line, asyncio.Server]] = {}

    async def watch(self) -> None:
        """Take the place of every socket that appears; until cancelled."""
        try:
            while True:
                for socket in self._folder.glob("*/host.sock"):
                    if socket not in self._lines:
                        await self._take(socket)
                await asyncio.sleep(_LOOK)
        finally:
            for line, server in self._lines.values():
                server.close()
                await line.close()

    async def _take(self, socket: Path) -> None:
        behind = socket.with_name("behind.sock")
        socket.rename(behind)
        line = Line(lambda: asyncio.open_unix_connection(behind))
        self._lines[socket] = line, await asyncio.start_unix_server(line.serve, socket)

    def of(self, pid: int) -> Line:
        """The line of the guest that a process belongs to."""
        mark = marked(pid)
        (line,) = (line for socket, (line, _) in self._lines.items() if mark_of(socket.parent.name) == mark)
        assert line.connections, "the guest was faster than the test"
        return line

    def mend(self) -> None:
        for line, _ in self._lines.values():
            line.mend()
