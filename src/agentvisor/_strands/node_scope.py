"""The node of a graph or swarm as the scope of effects: what its agent did, it does not do again when it begins again.

A node that was under way when its process died begins again, its agent asks its model again, and its tool uses have
other ids. What stays is the node, how often it has run before, and the run that took the input.
"""

from __future__ import annotations

from strands.hooks import AfterNodeCallEvent, BeforeNodeCallEvent, HookOrder
from strands.multiagent import Swarm
from strands.multiagent.base import MultiAgentBase
from strands.multiagent.graph import Graph

from agentvisor._strands.parts import Orchestrator, executors
from agentvisor.client import tool_scope


def scope_nodes(orchestrator: Orchestrator, origin: str) -> None:
    """From now on; `origin`: the run that took the input."""
    _scope(orchestrator, f"run/{origin}/")
    for _, one in executors(orchestrator):
        if isinstance(one, Graph | Swarm):
            _scope(one, "")


def _scope(orchestrator: Orchestrator, origin: str) -> None:
    def enter(event: BeforeNodeCallEvent) -> None:
        visit = _ended(event.source).count(event.node_id)
        # In a graph that is a node itself, its node comes first.
        above = origin or tool_scope.scope().removeprefix("tool/")
        tool_scope.enter(id(event.source), f"{above}{event.node_id}.{visit}")

    def leave(event: AfterNodeCallEvent) -> None:
        tool_scope.leave(id(event.source))

    orchestrator.hooks.add_callback(BeforeNodeCallEvent, enter, order=HookOrder.SDK_LAST)
    orchestrator.hooks.add_callback(AfterNodeCallEvent, leave, order=HookOrder.SDK_LAST)


def _ended(orchestrator: MultiAgentBase) -> list[str]:
    """The nodes that have ended, in order."""
    if isinstance(orchestrator, Graph):
        return [node.node_id for node in orchestrator.state.execution_order]
    if isinstance(orchestrator, Swarm):
        return [node.node_id for node in orchestrator.state.node_history]
    return []
