"""A host in a process of its own, as a user starts it; it can be killed, stopped and started again."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from select import select
from typing import Self

from tests.support.temporal import free_ports

from agentvisor.host import leash

READY_SECONDS = 90
"""Of which a host may take 60 until its agents are warm. One that never is must not cost the test all of its time."""


class HostProcess:
    """`agentvisor dev` in a folder with an agentvisor.yaml, on a Temporal server that lives elsewhere or is its own.

    With `command="serve"`, a host as in production: it drains before it ends.
    """

    def __init__(self, folder: Path, temporal: str, environment: dict[str, str], *, command: str = "dev") -> None:
        self.folder = folder
        self.temporal = temporal
        self.environment = environment
        self.command = command
        self.port = free_ports(1)[0]
        self.url = ""
        self.log = folder / f"host-{self.port}.log"
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it, and wait until it is ready."""
        return self.launch().ready()

    def launch(self) -> Self:
        """Start it; from the main thread, whose death ends it (leash.py)."""
        command = [sys.executable, "-m", "agentvisor.cli.main", self.command, "--port", str(self.port)]
        if self.command == "dev":
            command.append("--no-reload")
        if self.temporal:
            command += ["--temporal-address", self.temporal]
        else:
            ports = map(str, free_ports(2))
            command += ["--temporal-port", next(ports), "--temporal-ui-port", next(ports)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command],
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # As a job of a terminal is: a group that a test may send Ctrl-C to.
                start_new_session=True,
            )
        return self

    def ready(self) -> Self:
        assert self._process is not None
        assert self._process.stdout is not None
        said, _, _ = select([self._process.stdout], [], [], READY_SECONDS)
        line = self._process.stdout.readline() if said else f"nothing in {READY_SECONDS} s"
        if "AgentVisor ready at " not in line:
            self.kill()
            raise AssertionError(f"the host did not start: {line!r}\n{self.log.read_text()[-4000:]}")
        self.url = line.strip().rpartition(" ")[2]
        return self

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal; do not wait."""
        assert self._process is not None
        self._process.send_signal(number)

    def until_ended(self, seconds: float) -> int:
        """Wait for its end; its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(30)
