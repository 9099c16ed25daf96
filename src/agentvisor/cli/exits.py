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
from agentvisor.host.config import ConfigError

RUN_FAILED = 1
"""The run that was waited for ended in an error, or was cancelled."""

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

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def exit_code(error: AgentVisorError) -> int:
    """The exit code of an error."""
    return EXIT_CODES.get(type(error), 70)


def told(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a command end with the error's line and code instead of a traceback."""

    @wraps(command)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return command(*args, **kwargs)
        except AgentVisorError as error:
            print(f"agentvisor: {error.message}", file=sys.stderr)
            sys.exit(exit_code(error))
        except KeyboardInterrupt:
            sys.exit(130)

    return wrapped
