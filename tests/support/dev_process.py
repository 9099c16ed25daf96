"""`agentvisor dev` as a user types it, with its own Temporal, and everything that it starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from tests.support.temporal import free_ports
from tests.support.waiting_sync import until

from agentvisor.host import leash

AGENTVISOR = str(Path(sys.executable).parent / "agentvisor")


class DevProcess:
    """One `agentvisor dev` on ports of its own."""

    def __init__(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.options = options
        self.environment = environment or {}
        self.port, self.temporal_port, self.ui_port = free_ports(3)
        self.errors = folder / "dev.log"
        self.printed = ""
        """All of standard output until it was ready, and the rest of it after the end."""
        self._process: subprocess.Popen[str] | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> "DevProcess":
        """Start it; do not wait."""
        ports = ["--port", str(self.port), "--temporal-port", str(self.temporal_port)]
        ports += ["--temporal-ui-port", str(self.ui_port)]
        with self.errors.open("w") as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    leash.__file__,
                    str(os.getpid()),
                    AGENTVISOR,
                    "dev",
                    *ports,
                    *self.options,
                ],
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def start(self) -> "DevProcess":
        """Start it and wait for its line."""
        stdout = self.launch().process.stdout
        assert stdout is not None
        self.printed = stdout.readline()
        if not self.printed:
            raise AssertionError(f"it did not start ({self.process.wait(10)}):\n{self.errors.read_text()[-4000:]}")
        return self

    def fail(self) -> tuple[int, str]:
        """Start it and wait for its end: exit code, and what it says on standard error."""
        try:
            code = self.launch().process.wait(60)
        finally:
            self.end(signal.SIGKILL)
        return code, self.errors.read_text()

    def family(self) -> list[psutil.Process]:
        """It and all that it has started."""
        mine = psutil.Process(self.process.pid)
        return [mine, *mine.children(recursive=True)]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal and wait for its end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            rest, _ = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.printed += rest
        return self.process.returncode


def await_all_gone(processes: list[psutil.Process], *, seconds: float = 10) -> None:
    """Return once none of them runs; zombies that nobody collects count as gone."""

    def alive() -> list[psutil.Process]:
        return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def none_alive() -> bool:
        try:
            return not alive()
        except psutil.NoSuchProcess:
            return False

    until(none_alive, seconds=seconds)
