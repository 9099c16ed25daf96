"""A real S3 API for tests (moto), and a front before it that can be taken away, answer with errors, or hang."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from urllib.parse import quote
from xml.etree import ElementTree as ET

from tests.support.temporal import free_ports

from agentvisor.host import leash

BUCKET = "values"
_READY_SECONDS = 30
_CHUNK = 1 << 16
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 11\r\nConnection: close\r\n\r\nit is a test"
_NS = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Mood(Enum):
    FINE = "fine"
    GONE = "gone"
    """Connections are refused."""
    FAILING = "failing"
    """Every request is answered with 500."""
    HANGING = "hanging"
    """Connections are taken, and nothing is ever answered."""
    SWALLOWING = "swallowing"
    """Requests reach the store and take effect, and no answer comes back."""
    DELETING = "deleting"
    """The same of deletions; other requests are answered."""


class Front:
    """Passes bytes to the store, as its mood allows. Each request has a connection of its own or starts a new one."""

    def __init__(self, behind: int) -> None:
        self._behind = behind
        (self.port,) = free_ports(1)
        self._mood = Mood.GONE
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self.connections = 0
        """How many clients have come."""

    def set(self, mood: Mood) -> None:
        """From now on, for open connections, too."""
        self._mood = mood
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if mood is not Mood.GONE:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._mood is Mood.DELETING:
                first = client.recv(_CHUNK)
                self._pass_on(client, answers=not first.startswith((b"DELETE ", b"POST ")), first=first)
            elif self._mood in {Mood.FINE, Mood.SWALLOWING}:
                self._pass_on(client, answers=self._mood is Mood.FINE)
            elif self._mood is Mood.FAILING:
                client.recv(_CHUNK)
                client.sendall(_FAILED)
                _drain(client)
            else:
                _drain(client)
        except OSError:
            pass
        finally:
            self._open.discard(client)
            client.close()

    def _pass_on(self, client: socket.socket, *, answers: bool, first: bytes = b"") -> None:
        with socket.create_connection(("127.0.0.1", self._behind)) as server:
            self._open.add(server)
            server.sendall(first)
            back = threading.Thread(target=_copy if answers else _lose, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()
            self._open.discard(server)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _lose(source: socket.socket, _target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while source.recv(_CHUNK):
            pass


def _drain(client: socket.socket) -> None:
    while client.recv(_CHUNK):
        pass


class S3:
    """The store as tests look into it, past the front."""

    url = f"s3://{BUCKET}/some/prefix"

    def __init__(self, port: int, front: Front) -> None:
        self._address = f"http://127.0.0.1:{port}/{BUCKET}"
        self.front = front
        self.options = {
            "endpoint": f"http://127.0.0.1:{front.port}",
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
        }

    def keys(self) -> list[str]:
        found = ET.fromstring(self._call("GET", "?list-type=2&max-keys=1000"))
        return [one.text or "" for one in found.iter(f"{_NS}Key")]

    def read(self, key: str) -> bytes:
        return self._call("GET", "/" + quote(key))

    def write(self, key: str, data: bytes) -> None:
        self._call("PUT", "/" + quote(key), data)

    def delete(self, key: str) -> None:
        self._call("DELETE", "/" + quote(key))

    def empty(self) -> None:
        for key in self.keys():
            self.delete(key)

    def _call(self, method: str, rest: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(self._address + rest, data=data, method=method)
        request.add_header("Content-Type", "application/octet-stream")  # urllib's would have it parsed as a form
        request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as reply:
            return reply.read()


@contextmanager
def s3_server(folder: Path) -> Generator[S3]:
    """A store that answers, while the context lasts."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "moto.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command],
            stdout=log,
            stderr=log,
        )
    front = Front(port)
    try:
        store = S3(port, front)
        _until_ready(store, process)
        front.set(Mood.FINE)
        yield store
    finally:
        front.set(Mood.GONE)
        process.terminate()
        process.wait(10)


def _until_ready(store: S3, process: subprocess.Popen[bytes]) -> None:
    until = monotonic() + _READY_SECONDS
    ready = threading.Event()
    while not ready.wait(0.05):
        try:
            store._call("PUT", "")
        except OSError as error:
            if process.poll() is not None or monotonic() > until:
                raise RuntimeError("moto does not start") from error
        else:
            return
