"""A program of ours in a process of its own, which is gone when this one is, however this one ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import IO

READY = "ready at "
"""What such a program prints once it can be spoken to, before its address."""

START_SECONDS = 60.0
START_TRIES = 3
STOP_SECONDS = 20.0


class DidNotStart(Exception):
    """A program ended, or said nothing for long, before it was ready; with the end of its log."""


class Process:
    """Starts `python -m MODULE ARGUMENTS...` with standard error going to a log; can be started again."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path, *, folder: Path | None = None) -> None:
        self.log = log
        self.address = ""
        """What it said that it is ready at."""
        self._module = module
        self.arguments = arguments
        """Of the next start."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """0 before the first start."""
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, and return when it is ready."""
        # A path, not an import: it stands alone, and no part of the host is loaded into the tests' process.
        leash = str(Path(__file__).parents[1] / "host" / "leash.py")
        leashed = [sys.executable, "-I", "-S", leash, str(os.getpid())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*leashed, sys.executable, "-m", self._module, *self.arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for the tests, which end this in order.
                start_new_session=True,
            )
        assert self._process.stdout is not None  # noqa: S101 (for the type checker: it was asked for above)
        line = _first_line(self._process.stdout)
        if not line.startswith(READY):
            self.end(signal.SIGKILL)
            tail = self.log.read_text(errors="replace")[-4000:]
            raise DidNotStart(f"{self._module} did not start ({line!r}); its log, {self.log}, ends with:\n{tail}")
        self.address = line.removeprefix(READY).strip()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.is_alive:
            os.kill(self.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it and all that it has left in its group; killed where it takes too long."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            # Frozen, it would not hear of the end.
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()


def start_on_free_ports(process: Process, count: int, arguments: Callable[[list[int]], Sequence[str]]) -> list[int]:
    """Start it for the first time; the ports that it has: one that was free a moment ago may have been taken since."""
    for tries_left in reversed(range(START_TRIES)):
        ports = free_ports(count)
        process.arguments = arguments(ports)
        try:
            process.start()
        except DidNotStart:
            if not tries_left:
                raise
        else:
            return ports
    raise AssertionError  # not reached


def _first_line(stream: IO[bytes]) -> str:
    """The first line, as far as it came in time."""
    end, text = monotonic() + START_SECONDS, b""
    while not text.endswith(b"\n") and monotonic() < end:
        if select.select([stream], [], [], 0.2)[0]:
            more = os.read(stream.fileno(), 1024)
            if not more:
                break
            text += more
    return text.decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in sockets]
