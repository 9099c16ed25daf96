"""The command line in a terminal of its own, as a person sees it."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from typing import Self

_SECONDS = 60
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07)|\r")
_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from agentvisor.cli.main import main
main()
"""
"""Where the tests run in the background, SIGINT is ignored, and what they start would inherit that."""


class Terminal:
    """A command with a terminal on all three of its ends."""

    def __init__(self, *arguments: str, columns: int = 100, **environment: str) -> None:
        ours, theirs = pty.openpty()
        self._end = ours
        self.raw = ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns), **environment},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._end)

    @property
    def seen(self) -> str:
        """What stands in the terminal, without colours."""
        return _CONTROL.sub("", self.raw)

    def until(self, text: str) -> str:
        """Read until this is seen."""
        give_up = time.monotonic() + _SECONDS
        while text not in self.seen:
            assert time.monotonic() < give_up, self.seen
            assert self._more(), self.seen
        return self.seen

    def type(self, line: str) -> None:
        os.write(self._end, f"{line}\n".encode())

    def press(self, key: str) -> None:
        """Ctrl-C is C; the terminal makes a signal of it."""
        process_group = os.getpgid(self._process.pid)
        assert key == "C"
        os.killpg(process_group, 2)

    def ends(self) -> int:
        """Read to the end; the exit code."""
        while self._more():
            pass
        return self._process.wait(_SECONDS)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._end], [], [], _SECONDS)
        assert ready, f"nothing more is seen:\n{self.seen}"
        try:
            data = os.read(self._end, 65536)
        except OSError:  # Linux says so that the other end was closed
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)
