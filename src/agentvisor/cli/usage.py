"""What was typed wrongly, in one line: what, and the nearest that is right."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import typer

USAGE = 2
"""Exit code; the same as of an input that is refused."""
_NEAREST = re.compile(r" \(Possible options: (.*)\)$")


def run(app: Callable[..., object], program: str, arguments: list[str] | None = None) -> int:
    """Run an app of typer's; the exit code."""
    try:
        ended = app(arguments, prog_name=program, standalone_mode=False)
    except typer.Abort:
        print(f"{program}: given up", file=sys.stderr)
        return 130
    except typer.TyperException as error:
        return _wrong(error, program)
    return ended if isinstance(ended, int) else 0


def _wrong(error: typer.TyperException, program: str) -> int:
    code: int = getattr(error, "exit_code", USAGE)
    message = str(getattr(error, "format_message", lambda: str(error))())
    context = getattr(error, "ctx", None)
    command = str(context.command_path) if context is not None else program
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message, end="\n" if message else "", file=sys.stderr)  # the help, where rich has not printed it
        return code
    nearest = _NEAREST.search(message)
    if nearest:
        message = f"{message[: nearest.start()]}. Did you mean {' or '.join(nearest[1].split(', '))}?"
    one_line = " ".join(message.replace("Value error, ", "").rstrip(". ").split())
    stop = "" if one_line.endswith("?") else "."
    print(f"{program}: {one_line}{stop} `{command} --help` lists what there is", file=sys.stderr)
    return code
