"""How an activity closed, as the way its attempt ended: one total function over all that Temporal can say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ServerError,
    TimeoutError,  # noqa: A004 - Temporal's own name
    TimeoutType,
)

from agentvisor.core.attempts import Close
from agentvisor.core.runs import Ending
from agentvisor.protocol.threads import source_of
from agentvisor.protocol.v1 import journal_pb2


class Closed(NamedTuple):
    """How an attempt ended, and what it brings with its end."""

    close: Close
    rest: journal_pb2.Log
    """Of its log."""
    together: Sequence[bytes] = ()
    """Operations that count only because it ended so: an update's."""
    framework: str = ""
    """Of the agent, as its process said; empty where it said nothing."""


def close_of_value(result: object) -> Closed:
    """The activity completed: with the attempt's own report, or by somebody else's hand."""
    return _reported([result]) or _lost("the activity was completed with something that is no report of an attempt")


def _close_of(message: journal_pb2.AttemptClose) -> Closed:
    rest = message.rest
    close = Close(
        ending=Ending(message.ending or Ending.COMPLETED),
        error_type=message.error_type,
        error_message=message.error_message,
        output=message.output,
        code=message.code,
        host_queue=message.host_queue,
        source=source_of(rest),
    )
    return Closed(close, rest, tuple(message.together), message.framework)


def close_of_error(cause: BaseException | None) -> Closed:
    """The activity failed, timed out or was cancelled: with our report in its details, or without."""
    match cause:
        case CancelledError():
            return _reported(cause.details) or Closed(Close(Ending.NOT_STARTED), journal_pb2.Log())
        case TimeoutError():
            return _timed_out(cause)
        case ApplicationError():
            return _reported(cause.details) or _lost(f"the host's activity failed: {cause.message}")
        case ServerError():
            return _lost(f"Temporal refused the attempt's report: {cause.message}")
        case _:
            return _lost(f"the activity ended in an unknown way: {cause!r}")


def _reported(details: Sequence[object]) -> Closed | None:
    if not details or not isinstance(details[0], bytes):
        return None
    try:
        message = journal_pb2.AttemptClose.FromString(details[0])
    except DecodeError:
        return None
    return _close_of(message)


def _timed_out(cause: TimeoutError) -> Closed:
    """The last heartbeat's log is what the attempt has acknowledged."""
    details = cause.last_heartbeat_details
    log = journal_pb2.Log()
    if details and isinstance(details[0], bytes):
        try:
            log = journal_pb2.Log.FromString(details[0])
        except DecodeError:
            log = journal_pb2.Log()
    kind = TimeoutType.HEARTBEAT if cause.type is None else cause.type
    ending = Ending.TIME_BUDGET if kind == TimeoutType.START_TO_CLOSE else Ending.HOST_GONE
    says = {
        TimeoutType.SCHEDULE_TO_START: "no host took the run in time",
        TimeoutType.START_TO_CLOSE: "the run's time budget (temporal.run_timeout) is used up",
    }.get(kind, "the host stopped sending heartbeats")
    close = Close(
        ending,
        error_message=says,
        source=source_of(log),
        heartbeat_seen=bool(details),
        polled=kind != TimeoutType.SCHEDULE_TO_START,
    )
    return Closed(close, log)


def _lost(says: str) -> Closed:
    return Closed(Close(Ending.REPORT_LOST, error_message=says), journal_pb2.Log())
