"""The state of an agent, graph or swarm with all that is inside of it, as JSON: taken, and loaded into another process.

Strands' own snapshots end at an agent's or graph's border: of an agent that is a tool and keeps its conversation, and
of a graph or swarm that is a node, nothing is in them, and an answer to a question that was asked in there is consumed
without effect (strands-agents/harness-sdk#3076). So each part is taken for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import cast

from strands import Agent, Snapshot
from strands.multiagent import GraphBuilder, Swarm
from strands.multiagent.base import MultiAgentBase, Status
from strands.multiagent.graph import Graph
from strands.types.session import decode_bytes_values, encode_bytes_values

from agentvisor._strands.envelope import Owner
from agentvisor._strands.turns import State
from agentvisor.protocol.metadata import Json

Orchestrator = Graph | Swarm
Subject = Agent | Graph | Swarm
"""What can be run."""


def subject_of(made: object) -> Subject | None:
    """What is run of what a user's name stands for; None where it is nothing of the kind."""
    if isinstance(made, GraphBuilder):
        return made.build()
    return made if isinstance(made, Agent | Graph | Swarm) else None


def owner_of(subject: Subject) -> Owner:
    if isinstance(subject, Agent):
        return Owner("agent", subject.agent_id)
    kind = "graph" if isinstance(subject, Graph) else "swarm"
    return Owner(kind, subject.id, tuple(sorted(path for path, _ in executors(subject))))


def executors(orchestrator: Orchestrator, above: str = "") -> Iterator[tuple[str, object]]:
    """What its nodes run, at all levels, by the node's path."""
    for node_id, node in orchestrator.nodes.items():
        path = f"{above}{node_id}"
        yield path, node.executor
        if isinstance(node.executor, Graph | Swarm):
            yield from executors(node.executor, f"{path}/")


def agents_of(subject: Subject) -> Iterator[Agent]:
    """Every agent in it, those that are tools too, each once."""
    seen = set[int]()
    found = [subject] if isinstance(subject, Agent) else [one for _, one in executors(subject)]
    while found:
        agent = found.pop(0)
        if isinstance(agent, Agent) and id(agent) not in seen:
            seen.add(id(agent))
            yield agent
            found += tool_agents(agent, only_kept=False).values()


def tool_agents(agent: Agent, *, only_kept: bool = True) -> dict[str, Agent]:
    """The agents that are tools of an agent, by the tool's name; `only_kept`: those with a conversation of their own.

    The others begin anew at each call; what they need to go on after a question is in the calling agent's state.
    """
    found = dict[str, Agent]()
    for name, tool in agent.tool_registry.registry.items():
        inner = getattr(tool, "agent", None)
        if isinstance(inner, Agent) and (not only_kept or getattr(tool, "_preserve_context", False)):
            found[name] = inner
    return found


# --- agents -----------------------------------------------------------------------------------------------------------


def take_agent(agent: Agent, above: tuple[int, ...] = ()) -> State:
    """An agent, with the agents that are its tools."""
    above = (*above, id(agent))
    inner = {name: one for name, one in tool_agents(agent).items() if id(one) not in above}
    return {**take_alone(agent), "tools": {name: take_agent(one, above) for name, one in inner.items()}}


def take_alone(agent: Agent) -> State:
    """An agent without those that are its tools."""
    # "session" is Strands' own choice of what is to outlive a process. Bytes (images, documents) are in there as they
    # are; its own session managers encode them so.
    return {"snapshot": _plain(agent.take_snapshot(preset="session").to_dict()), "tools": {}}


def load_agent(agent: Agent, state: Mapping[str, Json]) -> None:
    """Raises whatever Strands raises where the state does not fit."""
    agent.load_snapshot(Snapshot.from_dict(_with_bytes(state["snapshot"])))
    inner = tool_agents(agent)
    for name, part in cast("State", state.get("tools") or {}).items():
        # A tool that is gone is answered for by Strands: "Unknown tool".
        if name in inner:
            load_agent(inner[name], cast("State", part))


# --- graphs and swarms ------------------------------------------------------------------------------------------------


Batches = Mapping[int, AbstractSet[str]]
"""By the id() of a graph: the nodes that it runs side by side now, those of them included that have ended."""


def take_orchestrator(
    orchestrator: Orchestrator, agents: Mapping[str, State], batches: Batches, above: str = ""
) -> State:
    """A graph or swarm, with what its nodes run; `agents`: the state of each agent, by its node's path."""
    nodes = State()
    for node_id, node in orchestrator.nodes.items():
        path = f"{above}{node_id}"
        if isinstance(node.executor, Graph | Swarm):
            nodes[node_id] = take_orchestrator(node.executor, agents, batches, f"{path}/")
        elif path in agents:
            nodes[node_id] = agents[path]
    state = _plain(orchestrator.serialize_state())
    if isinstance(orchestrator, Graph):
        _complete_interrupts(orchestrator, state, batches.get(id(orchestrator), frozenset()))
    return {"state": state, "nodes": nodes}


def _complete_interrupts(graph: Graph, state: State, batch: AbstractSet[str]) -> None:
    """Let a state that is taken while a question waits, and other nodes run, say which of them still have to.

    Strands says so when all of them have ended, and not before: restored in between, the graph would fail for lack of
    it, or take itself for finished and run nothing (Strands 1.62). A node that was under way is listed as interrupted:
    Strands runs those, and no others.
    """
    interrupts = cast("State", cast("State", state["_internal_state"])["interrupt_state"])
    if not interrupts["activated"]:
        return
    context = cast("State", interrupts["context"])
    status = {node_id: node.execution_status for node_id, node in graph.nodes.items()}
    asked = [node_id for node_id in context if node_id in status]
    left = [node_id for node_id in asked if status[node_id] is not Status.COMPLETED]
    left += [node_id for node_id in status if status[node_id] in _UNDER_WAY and node_id not in left]
    over = [node_id for node_id in status if node_id in batch and status[node_id] is Status.COMPLETED]
    before = cast("list[str]", context.get("completed_nodes") or [])
    if left:
        state["interrupted_nodes"] = cast("list[Json]", left)
        context["completed_nodes"] = cast("list[Json]", list(dict.fromkeys([*before, *over])))
    else:
        interrupts.update(activated=False, interrupts={}, context={})


_UNDER_WAY = (Status.DISPATCHED, Status.EXECUTING)


def batch_of(graph: Graph) -> set[str]:
    """The nodes that it is about to run, or runs, side by side."""
    return {node_id for node_id, node in graph.nodes.items() if node.execution_status in _UNDER_WAY}


def load_orchestrator(orchestrator: Orchestrator, state: Mapping[str, Json]) -> None:
    """Raises whatever Strands raises where the state does not fit."""
    own = cast("State", state["state"])
    if not own.get("next_nodes_to_execute"):
        return  # it was not in the middle of something, and begins anew: its agents too
    orchestrator.deserialize_state(_with_bytes(own))
    parts = cast("State", state.get("nodes") or {})
    for node_id, node in orchestrator.nodes.items():
        part = cast("State | None", parts.get(node_id))
        if part is None:
            continue
        if isinstance(node.executor, Agent):
            load_agent(node.executor, part)
        elif isinstance(node.executor, Graph | Swarm):
            load_orchestrator(node.executor, part)


def has_failed(orchestrator: MultiAgentBase) -> bool:
    """Whether it, or a graph or swarm in it, has failed: such a state is not to be gone on from.

    Strands would run the old task again from the failed node whatever the new input is, and call a run that then
    succeeds a failed one; past a limit it would leave out nodes that were approved, and call that completed.
    """
    if isinstance(orchestrator, Graph):
        status, failed = orchestrator.state.status, bool(orchestrator.state.failed_nodes)
    elif isinstance(orchestrator, Swarm):
        status, failed = orchestrator.state.completion_status, False
    else:
        return False
    if failed or status is Status.FAILED:
        return True
    return any(
        has_failed(node.executor) for node in orchestrator.nodes.values() if isinstance(node.executor, MultiAgentBase)
    )


def _plain(value: object) -> State:
    return cast("State", encode_bytes_values(value))


def _with_bytes(value: Json) -> dict[str, object]:
    return cast("dict[str, object]", decode_bytes_values(value))
