"""Where a run that another attempt goes on with has come to a breakpoint (`interrupt_before`, `interrupt_after`).

LangGraph takes a call without input for one that goes on behind the breakpoint at which the thread stands. An attempt
that dies there, its checkpoint stored and its end not told, would so let the next one pass what it had to stop at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple
from langgraph.constants import TAG_HIDDEN
from langgraph.types import StateSnapshot

from agentvisor.guest.runners.langgraph_graph import Graph

INTERRUPT = "__interrupt__"

Nodes = Collection[str] | Literal["*"]


async def stop_of(
    graph: Graph, config: RunnableConfig, run_id: str, before: Nodes | None, after: Nodes | None
) -> StateSnapshot | None:
    """The thread's state, where a run that has stored its latest checkpoint stops there; None: it goes on.

    Args:
        graph: the run's own, with its checkpointer.
        config: of its latest checkpoint.
        run_id: of the run: what others have stored was gone on from by this one.
        before: the caller's breakpoints; None: those that the graph was compiled with, as its subgraphs'.
        after: the same.
    """
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return None
    stands = await graph.aget_state(config, subgraphs=True)
    breakpoints = _Breakpoints(graph, saver, run_id)
    found = await breakpoints.stop(graph, stands, before or graph.interrupt_before_nodes,
                                   after or graph.interrupt_after_nodes)  # fmt: skip
    return stands if found else None


@dataclass(frozen=True)
class _Breakpoints:
    root: Graph
    saver: BaseCheckpointSaver[str]
    run_id: str

    async def stop(self, graph: Graph, state: StateSnapshot, before: Nodes, after: Nodes) -> bool:
        """Whether a graph, or one that it is in the midst of, stops where it stands. Decides as pregel does."""
        if (before or after) and await self._stops(graph, state, before, after):
            return True
        below = {task.name: task.state for task in state.tasks if isinstance(task.state, StateSnapshot)}
        if not below:
            return False
        inner = cast("Mapping[str, Graph]", dict(graph.get_subgraphs(recurse=False)))
        for name, one in below.items():
            if name in inner and (one.next or _is_of_a_task(one)):
                its = inner[name]
                if await self.stop(its, one, its.interrupt_before_nodes, its.interrupt_after_nodes):
                    return True
        return False

    async def _stops(self, graph: Graph, state: StateSnapshot, before: Nodes, after: Nodes) -> bool:
        head = await self.saver.aget_tuple(state.config)
        if head is None or head.metadata.get("run_id") != self.run_id or not _has_news(head.checkpoint):
            return False
        if before and _meets(graph, state, before):
            return True
        return bool(after) and _meets(graph, await self._done(head), after)

    async def _done(self, head: CheckpointTuple) -> StateSnapshot | None:
        """The state whose tasks have led to a checkpoint."""
        if head.parent_config is None or head.metadata.get("source") != "loop":
            return None
        return await self.root.aget_state(head.parent_config, subgraphs=False)


def _is_of_a_task(state: StateSnapshot) -> bool:
    """Not so a subgraph's with a memory of its own: that may have ended in an earlier task."""
    namespace: str = state.config.get("configurable", {}).get("checkpoint_ns", "")
    return ":" in namespace.rpartition("|")[2]


def _has_news(checkpoint: Checkpoint) -> bool:
    """Whether a channel has changed since the graph went on behind a breakpoint for the last time."""
    seen = checkpoint["versions_seen"].get(INTERRUPT, {})
    versions = cast("Mapping[str, str]", checkpoint["channel_versions"])
    return any(version > cast("str", seen.get(channel, "")) for channel, version in versions.items())


def _meets(graph: Graph, state: StateSnapshot | None, nodes: Nodes) -> bool:
    names = [] if state is None else [task.name for task in state.tasks]
    return any(name in nodes if nodes != "*" else not _is_hidden(graph, name) for name in names)


def _is_hidden(graph: Graph, node: str) -> bool:
    return TAG_HIDDEN in (getattr(graph.nodes.get(node), "tags", None) or ())
