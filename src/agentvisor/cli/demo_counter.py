"""The demonstration's counter: an HTTP server outside the agent that hears of every side effect."""

from __future__ import annotations

import json
import threading
from collections import Counter as Count
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Counter:
    """Counts what the agent's tools begin and finish."""

    def __init__(self) -> None:
        self._counts: Count[tuple[str, str]] = Count()
        self._names: dict[str, None] = {}
        self._lock = threading.Lock()
        self.pid = 0
        """The agent process that spoke last."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begun(self, what: str) -> int:
        return self._counts[what, "begun"]

    def finished(self, what: str) -> int:
        return self._counts[what, "finished"]

    def all(self) -> list[str]:
        return list(self._names)

    def _heard(self, what: str, phase: str, pid: int) -> None:
        with self._lock:
            self._counts[what, phase] += 1
            self._names[what] = None
            self.pid = pid

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        heard = self._heard

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heard(said["what"], said["phase"], said["pid"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        return Handler
