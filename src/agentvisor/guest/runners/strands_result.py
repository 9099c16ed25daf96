"""What a Strands run has come to: its result, a question, or a failure that Strands raises nothing for."""

from __future__ import annotations

from strands import Agent
from strands.agent import AgentResult
from strands.multiagent.base import MultiAgentResult, Status

from agentvisor._strands.parts import Subject, has_failed, owner_of

Result = AgentResult | MultiAgentResult


class RunFailed(Exception):
    """A graph or swarm has come to status "failed" without an exception, or an earlier attempt has failed already."""


def is_interrupted(result: Result) -> bool:
    if isinstance(result, AgentResult):
        return result.stop_reason == "interrupt"
    return result.status is Status.INTERRUPTED


def raise_failure(subject: Subject, result: Result) -> None:
    """A graph or swarm may end as failed without raising anything: at a limit, and a swarm always."""
    if isinstance(subject, Agent) or isinstance(result, AgentResult) or not has_failed(subject):
        return
    for node in result.results.values():
        if isinstance(node.result, Exception):
            raise node.result
    raise RunFailed(
        f"the {owner_of(subject)} ended with status failed: a node was cancelled, or a limit was reached (of node "
        "executions, handoffs, iterations or time, which count over all runs of one task)"
    )
