"""Describes an agent that is no LangGraph graph, as LangGraph's clients know agents: a graph with a single node."""

from __future__ import annotations

import json

from agentvisor.client.socketpair import Channel
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.telling import told_framework
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Description, Outcome


def describe_agent(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:  # noqa: ARG001 (a runner's signature)
    """What is asked for of it. The agent was loaded, so that one which cannot be says so."""
    described = _described(task, task.framework or told_framework(agent))
    return Outcome(kind=Outcome.KIND_COMPLETED, output=json.dumps(described).encode())


def _described(task: AgentTask, framework: str) -> object:
    name = task.spec.agent
    match task.description.part:
        case Description.PART_GRAPH:
            nodes = [_node("__start__"), _node(name), {"id": "__end__"}]
            return {
                "nodes": nodes,
                "edges": [{"source": "__start__", "target": name}, {"source": name, "target": "__end__"}],
            }
        case Description.PART_SCHEMAS:
            unknown = dict.fromkeys(("input_schema", "output_schema", "state_schema", "context_schema"))
            return {"graph_id": name, **unknown, "config_schema": {}, "framework": framework}
        case _:
            return {}


def _node(name: str) -> dict[str, object]:
    return {"id": name, "type": "runnable", "data": {"name": name}}
