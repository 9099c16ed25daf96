"""Writes to a socket whose other end may be slow or gone, without waiting and without an error.

asyncio's stream would close the whole socket when a write fails, and lose what a dying agent had said on it before.
"""

from __future__ import annotations

import asyncio
import socket


class Outgoing:
    """The writing side of a non-blocking socket; somebody else reads from it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._backlog = bytearray()
        self._gone = False

    @property
    def backlog(self) -> int:
        """Bytes that the other end has not taken yet."""
        return len(self._backlog)

    def write(self, data: bytes) -> None:
        """Send now what the socket takes, and the rest when it takes more."""
        if self._gone:
            return
        waiting = bool(self._backlog)
        self._backlog += data
        if not waiting:
            self._send()
            if self._backlog:
                asyncio.get_running_loop().add_writer(self._socket, self._send)

    def close(self) -> None:
        """Forget what was not sent."""
        self._gone = True
        self._backlog.clear()
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_writer(self._socket)

    def _send(self) -> None:
        try:
            sent = self._socket.send(self._backlog)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        del self._backlog[:sent]
        if not self._backlog:
            asyncio.get_running_loop().remove_writer(self._socket)
