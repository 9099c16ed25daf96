"""A receiver of webhooks: a real server, which notes what comes and answers as a test wants."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    """One request; names of headers are small."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        """The body's JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """What has come so far, and what is answered."""

    port: int = 0
    got: list[Got] = field(default_factory=list[Got])
    answers: list[int] = field(default_factory=list[int])
    """Statuses of the next answers; after them, 200."""
    hold: threading.Event = field(default_factory=threading.Event)
    """While it is not set, nobody is answered."""

    def at(self, path: str) -> list[Got]:
        return [one for one in self.got if one.path == path]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def receiving() -> Generator[Receiver]:
    """A receiver on a port of its own."""
    receiver = Receiver()
    receiver.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(Got(self.path, headers, body))
            receiver.hold.wait()
            status = receiver.answers.pop(0) if receiver.answers else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", self.path)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Not on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
