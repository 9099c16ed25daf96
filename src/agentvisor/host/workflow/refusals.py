"""A refused update: an error of our tree as the failure that Temporal hands to the caller, and back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from temporalio.exceptions import ApplicationError

from agentvisor.core.errors import ERRORS, AgentVisorError, Internal


@contextmanager
def refusing() -> Generator[None]:
    """Refuse the update instead of failing the workflow task."""
    try:
        yield
    except AgentVisorError as error:
        raise ApplicationError(error.message, error.details, type=error.code, non_retryable=True) from error


def was_dropped(error: BaseException | None) -> bool:
    """Whether no worker has looked at the update: one that ends may leave it. Nothing has happened; send it again."""
    return isinstance(error, ApplicationError) and error.type == "UnprocessedUpdate"


def refusal(error: BaseException | None) -> AgentVisorError:
    """The error of our tree that a failed update carries."""
    if isinstance(error, ApplicationError) and error.type in ERRORS:
        details = cast("dict[str, str]", error.details[0]) if error.details else {}
        return ERRORS[error.type](error.message, **details)
    return Internal(f"the thread's workflow failed the update: {error}")
