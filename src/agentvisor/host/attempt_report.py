"""What a host reports of an attempt whose agent has ended, by itself or because it was stopped."""

from __future__ import annotations

from agentvisor.host.guests import AgentEnd, RunningAgent
from agentvisor.host.metrics import FRAMEWORKS
from agentvisor.protocol.v1 import journal_pb2, run_pb2

_TEXT_CHARS = 16_000


def close_of(end: AgentEnd, max_output: int) -> journal_pb2.AttemptClose:
    """The report of an agent's end: its own last word where it had one."""
    close = journal_pb2.AttemptClose(ending=end.ending, code=end.code, error_message=end.message[:_TEXT_CHARS])
    if end.outcome is not None:
        close.output = end.outcome.output
        close.error_type = end.outcome.error_type[:_TEXT_CHARS]
        close.error_message = (end.outcome.error_message or end.message)[:_TEXT_CHARS]
        close.traceback = end.outcome.traceback[-_TEXT_CHARS:]
        close.framework = end.outcome.framework if end.outcome.framework in FRAMEWORKS else ""
    if len(close.output) > max_output:
        return journal_pb2.AttemptClose(
            ending=run_pb2.ENDING_AGENT_ERROR,
            error_type="ValueTooLarge",
            error_message=f"the agent's result has {len(close.output)} bytes, the limit is {max_output} "
            "(storage.max_output): return a reference to large data instead",
        )
    return close


def close_of_stopped(
    agent: RunningAgent, ending: run_pb2.Ending.ValueType, max_output: int
) -> journal_pb2.AttemptClose:
    """The report of an agent that was stopped: one that completed meanwhile has completed."""
    if agent.ended.done() and not agent.ended.cancelled():
        close = close_of(agent.ended.result(), max_output)
        if close.ending in (run_pb2.ENDING_COMPLETED, run_pb2.ENDING_PAUSED):
            return close
    return journal_pb2.AttemptClose(ending=ending)


def name_of(ending: run_pb2.Ending.ValueType) -> str:
    """As the API, metrics and traces say it."""
    return run_pb2.Ending.Name(ending).removeprefix("ENDING_").lower()
