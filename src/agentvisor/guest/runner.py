"""What runs an agent of one kind: the protocol that runners keep, and the choice among them."""

from __future__ import annotations

from typing import Protocol

from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.telling import told_framework
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome
from agentvisor.protocol.v1.run_pb2 import RUN_KIND_UPDATE


class Runner(Protocol):
    """Runs one agent to its end."""

    def __call__(self, agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
        """Return COMPLETED or PAUSED, with everything that was written acknowledged; raise what the agent raises."""
        ...


def work_for(task: AgentTask, agent: object) -> Runner:
    """What does the task: as a rule a runner; for some the agent is not run, and its framework asked instead."""
    framework = task.framework or told_framework(agent)
    if task.HasField("description"):
        if framework != "langgraph":
            from agentvisor.guest.runners.description import describe_agent

            return describe_agent
        from agentvisor.guest.runners.langgraph_description import describe_graph

        return describe_graph
    if task.spec.kind == RUN_KIND_UPDATE:
        if framework != "langgraph":
            raise InvalidInput(
                f"agent {task.spec.agent!r} is no LangGraph graph ({framework}): the state of its threads is its own "
                "business, and cannot be updated from outside"
            )
        from agentvisor.guest.runners.langgraph_update import update_graph

        return update_graph
    return runner_for(framework, agent)


def runner_for(framework: str, agent: object) -> Runner:
    """Choose by the configured framework, or else by what the agent is. Imports that framework only."""
    match framework or told_framework(agent):
        case "langgraph":
            from agentvisor.guest.runners.langgraph import run_graph

            return run_graph
        case "strands":
            from agentvisor.guest.runners.strands import run_strands

            return run_strands
        case "adk":
            from agentvisor.guest.runners.adk import run_adk

            return run_adk
        case "crewai":
            from agentvisor.guest.runners.crewai import run_crewai

            return run_crewai
        case "pydantic_ai":
            from agentvisor.guest.runners.pydantic_ai import run_pydantic_ai

            return run_pydantic_ai
        case "openai_agents":
            from agentvisor.guest.runners.openai_agents import run_openai_agents

            return run_openai_agents
        case "function":
            from agentvisor.guest.runners.function import run_function

            return run_function
        case unknown:
            raise InvalidInput(
                f"framework {unknown!r} is not known: use langgraph, strands, adk, crewai, pydantic_ai, "
                "openai_agents or function"
            )
