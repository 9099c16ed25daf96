"""A line to a server that can go dead: nothing is closed, nothing arrives; mended, what was held arrives late.

And it can drop the connections that it has, as a proxy does with those that are idle: closed, or without a word.
"""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class Line:
    """Passes bytes between clients of `address` and the server, in a thread of its own."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._alive = asyncio.Event()
        self._alive.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._silent = False
        self._forgotten: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        self._do(self._alive.clear)

    def mend(self) -> None:
        self._do(self._alive.set)

    def drop(self, *, silently: bool) -> None:
        """End the connections that there are; new ones work. Silently: neither side is told."""

        def change() -> None:
            self._silent = silently
            for pump in self._pumps:
                pump.cancel()

        self._do(change)

    def _do(self, change: Callable[[], None]) -> None:
        async def do() -> None:
            change()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result()

    async def _serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await over.wait()
        server.close()
        self._silent = False
        for pump in self._pumps:
            pump.cancel()
        for sink in self._forgotten:
            sink.close()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(*self._server)
        for source, sink in ((reader, ours), (theirs, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await source.read(65536):
                    await self._alive.wait()
                    sink.write(data)
                    await sink.drain()
        finally:
            if self._silent:
                self._forgotten.append(sink)
            else:
                sink.close()


@contextmanager
def line_to(server: str) -> Generator[Line]:
    """A line that works, while the context lasts."""
    line = Line(server)
    ready, over = threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: line._loop.run_until_complete(line._serve(ready, over)))
    thread.start()
    ready.wait()
    try:
        yield line
    finally:
        line._loop.call_soon_threadsafe(over.set)
        thread.join()
        line._loop.close()
