"""The Temporal server of a test session: a real one, on free ports, started again on its database when it dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from agentvisor.testing.process import Process, start_on_free_ports


class Temporal:
    """Runs from `start` to `stop`. The tests of a session share it: each thread has an id of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process = Process("agentvisor.testing.temporal_main", [], folder / "keeper.log")
        self.address = ""
        self.ui_url = ""
        """For people: its page shows every thread, by its id."""

    @property
    def pid(self) -> int:
        """Of the process that keeps the server; the server is its child."""
        return self._process.pid

    def start(self) -> None:
        ports = start_on_free_ports(self._process, 2, lambda ports: [str(self._folder), *map(str, ports)])
        self.address = f"127.0.0.1:{ports[0]}"
        self.ui_url = f"http://127.0.0.1:{ports[1]}"

    def stop(self) -> None:
        self.thaw()
        self._process.end()

    def kill(self) -> None:
        """SIGKILL of the server; it comes back by itself."""
        self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP of the server, until `thaw`."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.is_alive:
            for server in psutil.Process(self.pid).children():
                os.kill(server.pid, number)
