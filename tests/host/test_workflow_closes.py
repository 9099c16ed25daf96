"""Every way in which Temporal can say that an activity closed becomes an ending, with the log that came along."""

import pytest
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ServerError,
    TerminatedError,
    TimeoutError,  # noqa: A004 - Temporal's own name
    TimeoutType,
)

from agentvisor.core.runs import Ending
from agentvisor.host.workflow.closes import close_of_error, close_of_value
from agentvisor.protocol.v1 import journal_pb2, run_pb2

LOG = journal_pb2.Log(
    run_id="r", attempt=2, first_seq=3, entries=[b"one", b"two"], committed_at_ms=7, host_id="h1", started_at_ms=5
)


def report(ending: run_pb2.Ending.ValueType, **fields: object) -> bytes:
    return journal_pb2.AttemptClose(ending=ending, rest=LOG, **fields).SerializeToString()  # type: ignore[arg-type]


def timed_out(kind: TimeoutType | None, *details: object) -> TimeoutError:
    return TimeoutError("timed out", type=kind, last_heartbeat_details=details)


@pytest.mark.parametrize("ending", [one for one in run_pb2.Ending.values() if one])
def test_a_report_says_how_the_attempt_ended_and_brings_the_rest_of_its_log(ending: run_pb2.Ending.ValueType) -> None:
    said = {"error_type": "T", "error_message": "m", "output": b"1", "code": 9, "host_queue": "q:h1"}
    encoded = report(ending, together=[b"op"], **said)
    for close, log, together, _ in (
        close_of_value(encoded),
        close_of_error(CancelledError("cancelled", encoded)),
        close_of_error(ApplicationError("failed", encoded)),
    ):
        assert close.ending == ending
        assert (close.error_type, close.error_message, close.output, close.code) == ("T", "m", b"1", 9)
        assert close.host_queue == "q:h1"
        assert (close.source.host_id, close.source.started_at_ms, close.source.committed_at_ms) == ("h1", 5, 7)
        assert log == LOG
        assert together == (b"op",)


@pytest.mark.parametrize("result", [None, "text", {"a": 1}, b"\xff\xff\xff no report", 7])
def test_a_completion_by_somebody_elses_hand_is_a_lost_report_and_no_failure_of_the_workflow(result: object) -> None:
    close, log, *_ = close_of_value(result)
    assert close.ending is Ending.REPORT_LOST
    assert not log.entries


@pytest.mark.parametrize("details", [(), ("ACTIVITY_ID_NOT_STARTED",), (b"\xff\xff\xff",)])
def test_notstarted_a_cancellation_without_our_report_means_that_it_never_began(details: tuple[object, ...]) -> None:
    close, log, *_ = close_of_error(CancelledError("cancelled", *details))
    assert close.ending is Ending.NOT_STARTED
    assert not log.entries


@pytest.mark.parametrize(
    "kind, ending",
    [
        (TimeoutType.HEARTBEAT, Ending.HOST_GONE),
        (TimeoutType.SCHEDULE_TO_START, Ending.HOST_GONE),
        (TimeoutType.SCHEDULE_TO_CLOSE, Ending.HOST_GONE),
        (TimeoutType.START_TO_CLOSE, Ending.TIME_BUDGET),
        (None, Ending.HOST_GONE),
    ],
)
def test_a_timeout_brings_the_log_of_the_last_heartbeat(kind: TimeoutType | None, ending: Ending) -> None:
    close, log, *_ = close_of_error(timed_out(kind, LOG.SerializeToString()))
    assert close.ending is ending
    assert close.heartbeat_seen
    assert close.polled is (kind is not TimeoutType.SCHEDULE_TO_START)
    assert close.error_message
    assert (close.source.host_id, close.source.committed_at_ms) == ("h1", 7)
    assert log == LOG


@pytest.mark.parametrize("details", [(), ("text",), (b"\xff\xff\xff",)])
def test_a_timeout_without_a_readable_log_brings_none(details: tuple[object, ...]) -> None:
    close, log, *_ = close_of_error(timed_out(TimeoutType.HEARTBEAT, *details))
    assert close.ending is Ending.HOST_GONE
    assert close.heartbeat_seen is bool(details)
    assert not log.entries


@pytest.mark.parametrize(
    "cause",
    [
        ServerError("Heartbeat details exceed size limit"),
        ApplicationError("it raised"),
        ApplicationError("it raised", "foreign", "details"),
        TerminatedError("terminated"),
        ValueError("anything"),
        None,
    ],
)
def test_whatever_else_happens_is_a_lost_report_that_says_what_happened(cause: BaseException | None) -> None:
    close, log, *_ = close_of_error(cause)
    assert close.ending is Ending.REPORT_LOST
    assert close.error_message
    assert not log.entries
