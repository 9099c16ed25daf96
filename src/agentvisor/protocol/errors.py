"""Errors on the wire: one message for the whole tree, and the class it comes back as."""

from __future__ import annotations

from agentvisor.core.errors import ERRORS, AgentVisorError, Internal
from agentvisor.protocol.v1 import store_pb2


def to_error(error: AgentVisorError) -> store_pb2.Error:
    """The message of an error."""
    return store_pb2.Error(code=error.code, message=error.message, details=error.details)


def from_error(message: store_pb2.Error) -> AgentVisorError:
    """The error of a message; `Internal` where a newer version sent a code that this one does not know."""
    error = ERRORS.get(message.code, Internal)(message.message)
    error.details = dict(message.details)
    return error
