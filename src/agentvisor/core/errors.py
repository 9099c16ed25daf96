"""The one tree of errors: every failure that a user can meet has a class and a code here."""

from __future__ import annotations

from typing import ClassVar


class AgentVisorError(Exception):
    """Any failure that AgentVisor reports. `code` is stable; `details` are strings that a program may read."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, str] = details


class InvalidInput(AgentVisorError, ValueError):
    """The caller sent something that can never be accepted; the message says what and where."""

    code = "invalid_input"


class UnknownAgent(InvalidInput):
    """No agent of that name is configured."""

    code = "unknown_agent"


class UpdateRefused(AgentVisorError, ValueError):
    """The agent's graph does not take this update of its state; nothing was changed."""

    code = "update_refused"


class AgentBroken(AgentVisorError):
    """The agent's code could not be loaded, or raised when it was asked what it is."""

    code = "agent_broken"


class NotFound(AgentVisorError, LookupError):
    """The thread, run or checkpoint does not exist."""

    code = "not_found"


class Conflict(AgentVisorError):
    """It exists already, or the thread is busy with something that excludes the request."""

    code = "conflict"


class Fenced(AgentVisorError):
    """The writer has lost its attempt: a newer one may be running, and nothing that it writes counts any more."""

    code = "fenced"


class PermissionRefused(AgentVisorError, PermissionError):
    """The key or ticket does not allow this thread."""

    code = "permission_refused"


class ValueTooLarge(AgentVisorError):
    """One value, input or record is over its limit; nothing was stored."""

    code = "value_too_large"


class StateTooLarge(AgentVisorError):
    """The thread's state with this value would no longer fit; nothing was stored."""

    code = "state_too_large"


class ThreadFailed(AgentVisorError):
    """The thread ended loudly; it can be read and deleted, not run."""

    code = "thread_failed"


class Unavailable(AgentVisorError, ConnectionError):
    """A part that is needed does not answer (host, Temporal, guest); trying again later may succeed."""

    code = "unavailable"


class StorageUnavailable(AgentVisorError, ConnectionError):
    """External storage has not answered for as long as it was given; nothing of the request was stored."""

    code = "storage_unavailable"


class Sealed(AgentVisorError):
    """It was encrypted with a key that this host does not have, or is not encrypted where this host requires that."""

    code = "sealed"


class UnknownOutcome(AgentVisorError):
    """It is not known whether an effect happened: the process that was about to do it ended before it could say."""

    code = "unknown_outcome"

    def __init__(self, message: str = "the outcome is unknown", **details: str) -> None:
        super().__init__(message, **details)


class IncompatibleState(AgentVisorError):
    """What is stored of an agent cannot be loaded into the agent that is there now; it was left as it is."""

    code = "incompatible_state"


class Corrupt(AgentVisorError):
    """Bytes that do not match their hash, or a difference whose base is missing."""

    code = "corrupt"


class Internal(AgentVisorError):
    """A defect of AgentVisor; the log has the traceback."""

    code = "internal"


ERRORS: dict[str, type[AgentVisorError]] = {
    error.code: error
    for error in (
        InvalidInput,
        UnknownAgent,
        UpdateRefused,
        AgentBroken,
        NotFound,
        Conflict,
        Fenced,
        PermissionRefused,
        ValueTooLarge,
        StateTooLarge,
        ThreadFailed,
        Unavailable,
        StorageUnavailable,
        Sealed,
        UnknownOutcome,
        IncompatibleState,
        Corrupt,
        Internal,
    )
}
"""Code to class, for both ends of every wire."""
