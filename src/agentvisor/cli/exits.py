"""How the program ends: one exit code for each class of error, one line that says what, where and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from agentvisor.core.errors import (
    AgentBroken,
    AgentVisorError,
    Conflict,
    Corrupt,
    Fenced,
    IncompatibleState,
    Internal,
    InvalidInput,
    NotFound,
    PermissionRefused,
    Sealed,
    StateTooLarge,
    StorageUnavailable,
    ThreadFailed,
    Unavailable,
    UnknownAgent,
    UnknownOutcome,
    UpdateRefused,
    ValueTooLarge,
)
from agentvisor.host.config_error import ConfigError

RUN_FAILED = 1
"""The run that was waited for ended in an error, or was cancelled."""
INTERRUPTED = 130
"""Ctrl-C, or a question that was not agreed to."""

EXIT_CODES: dict[type[AgentVisorError], int] = {
    InvalidInput: 2,
    UnknownAgent: 2,
    ConfigError: 2,
    UpdateRefused: 2,
    AgentBroken: 2,
    NotFound: 3,
    Conflict: 4,
    Fenced: 4,
    UnknownOutcome: 4,
    IncompatibleState: 4,
    ThreadFailed: 4,
    PermissionRefused: 5,
    ValueTooLarge: 6,
    StateTooLarge: 6,
    Unavailable: 7,
    StorageUnavailable: 7,
    Sealed: 7,
    Corrupt: 70,
    Internal: 70,
}
"""Total: every error of the tree has its row."""

MEANINGS: dict[int, str] = {
    0: "it is done; a run that was waited for has succeeded, or waits for an answer",
    RUN_FAILED: "the run that was waited for ended in an error or by its time budget, or was cancelled",
    2: "what was typed, an input, a file or the configuration is not allowed; or the agent's code does not load",
    3: "there is no such thread, run, checkpoint or assistant, or it is another owner's",
    4: "it is there already, is busy, or waits no more: something has come in between",
    5: "the key is missing, does not count, or does not allow it",
    6: "a value, an input or the thread is too large",
    7: "something that is needed does not answer: the host, Temporal, external storage",
    70: "a stored value is damaged, or there is a defect in AgentVisor; the host's log says more",
    INTERRUPTED: "Ctrl-C, or a question was not agreed to; a run that was followed goes on",
}
"""Total: every code that the program ends with, for people."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def exit_code(error: AgentVisorError) -> int:
    """The exit code of an error."""
    return EXIT_CODES.get(type(error), 70)


def say(error: AgentVisorError) -> None:
    """The error's line."""
    from agentvisor.cli.show import plain  # it loads rich, which most commands that end well never need

    print(f"agentvisor: {plain(error.message)}", file=sys.stderr)


def told(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a command end with the error's line and code instead of a traceback."""

    @wraps(command)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return command(*args, **kwargs)
        except AgentVisorError as error:
            say(error)
            sys.exit(exit_code(error))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    return wrapped
