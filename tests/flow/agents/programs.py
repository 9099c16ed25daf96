"""Programs that invoke a graph by themselves, synchronously: then checkpoints are written from a pool of threads."""

import os

from agents import five_nodes
from agentvisor.langgraph import AgentVisorCheckpointer


def five(given: dict[str, str]) -> dict[str, str]:
    """Begin with the input, or go on where an earlier attempt has begun."""
    graph = five_nodes.builder.compile(checkpointer=AgentVisorCheckpointer())
    # LangGraph itself wants a thread here; `invoke` finds it.
    state = graph.get_state({"configurable": {"thread_id": os.environ["AGENTVISOR_THREAD_ID"]}})
    begun = state.metadata is not None
    return dict(graph.invoke(None if begun else given, durability="sync"))
