"""The program `agentvisor`: gathers the commands, and says what to install where the host's packages are missing."""

from __future__ import annotations

import atexit
import errno
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

_MISSING = """\
agentvisor: the command line needs the packages of the host, and {name} is missing.
Install them with: pip install 'agentvisor[host]'"""


_INTERRUPTED = 130
"""As in exits.py, which may not be there yet."""
_UNAVAILABLE = 7
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SEEN_ENOUGH = 0
"""Who reads wants no more, as of `agentvisor threads list | head -1`: that is no failure."""


def main() -> None:
    """Run the command line; exits with the code of `agentvisor.cli.exits`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the program lives
    try:
        from agentvisor.cli import usage
        from agentvisor.cli.commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "agentvisor":
            raise
        print(_MISSING.format(name=error.name), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # before there was a command
        os._exit(_INTERRUPTED)
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="backslashreplace")  # what the terminal's encoding does not have is no failure
    try:
        code: object = usage.run(app, "agentvisor")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer takes it for a failure
            os._exit(_SEEN_ENOUGH)
        code = end.code
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        os._exit(_SEEN_ENOUGH)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        code = _unwritten(error)
    _leave(code)


def _unwritten(error: OSError) -> int:
    """The disk that standard output goes to is full."""
    with suppress(OSError):
        print(f"agentvisor: the output cannot be written: {error.strerror}", file=sys.stderr)
    return _UNAVAILABLE


def _leave(code: object) -> NoReturn:
    """End without taking the interpreter apart.

    Temporal's client has threads of its own, and one that connects in vain may reach for the interpreter meanwhile: one
    in five `agentvisor serve` without a server ended by a signal, after it had said all it had to say.
    """
    if isinstance(code, str):
        print(code, file=sys.stderr)
    atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        code = code or _unwritten(error)
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
