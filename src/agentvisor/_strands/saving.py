"""Saves an agent on every message, and a graph or swarm after every node, before it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from strands import Agent
from strands.hooks import (
    AfterNodeCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeNodeCallEvent,
    HookOrder,
    MessageAddedEvent,
)
from strands.multiagent import Swarm
from strands.multiagent.base import Status
from strands.multiagent.graph import Graph
from strands.types.session import encode_bytes_values

from agentvisor._strands.envelope import UNDER_WAY, Saved
from agentvisor._strands.parts import (
    Orchestrator,
    Subject,
    batch_of,
    executors,
    has_failed,
    take_agent,
    take_alone,
    take_orchestrator,
    tool_agents,
)
from agentvisor._strands.turns import State
from agentvisor.protocol.metadata import Json

Save = Callable[[str, Saved], Awaitable[object]]
"""Stores what is saved under a key, durably when it returns."""


class Saving(Protocol):
    """The saves of one run."""

    latest: Saved
    """What was stored last; before the first save, without a state."""

    def state(self) -> State:
        """All there is, once nothing runs any more."""
        ...


def saving(subject: Subject, run: Saved, save: Save) -> Saving:
    """Begin to save; the subject is loaded and does not run yet. `run`: what all saves say of the run."""
    return AgentSaves(subject, run, save) if isinstance(subject, Agent) else NodeSaves(subject, run, save)


class AgentSaves:
    """Of an agent."""

    def __init__(self, agent: Agent, run: Saved, save: Save) -> None:
        self._agent = agent
        self._save = save
        self._input_left = 0
        self._tools = take_agent(agent)["tools"]
        self.latest = self._next = run
        agent.hooks.add_callback(BeforeInvocationEvent, self._count_input, order=HookOrder.SDK_LAST)
        # What the user's own hooks make of a message or a result is to be saved: they come first.
        agent.hooks.add_callback(MessageAddedEvent, self._added, order=HookOrder.SDK_LAST)
        agent.hooks.add_callback(AfterToolCallEvent, self._tool_ended, order=HookOrder.SDK_FIRST)

    def state(self) -> State:
        return take_agent(self._agent)

    def _count_input(self, event: BeforeInvocationEvent) -> None:
        self._input_left = len(event.messages or [])

    async def _added(self, event: MessageAddedEvent) -> None:  # noqa: ARG002 (Strands' signature)
        if self._input_left:
            self._input_left -= 1
            if self._input_left:
                return  # an input of several messages is in when all of them are
        state = self.state()
        self._tools = state["tools"]
        await self._store(replace(self._next, state=state, results={}))

    async def _tool_ended(self, event: AfterToolCallEvent[Any]) -> None:
        """Keep the result of one of several tools that were called together: Strands adds one message for all."""
        id_, name = event.tool_use["toolUseId"], event.tool_use["name"]
        together = self._together()
        if event.retry or id_ not in together or len(together) < 2:
            return
        inner = tool_agents(self._agent).get(name)
        if inner is not None and isinstance(self._tools, dict):
            # The others are in the middle of something, and will be asked the same again.
            self._tools = {**self._tools, name: take_agent(inner)}
        result: Json = encode_bytes_values(event.result)
        state = {**take_alone(self._agent), "tools": self._tools}
        await self._store(replace(self._next, state=state, results={**self._next.results, id_: result}))

    def _together(self) -> set[str]:
        last = self._agent.messages[-1] if self._agent.messages else None
        return {block["toolUse"]["toolUseId"] for block in last["content"] if "toolUse" in block} if last else set()

    async def _store(self, saved: Saved) -> None:
        # Before it is stored: of tools that end together each adds its result to the others'.
        self._next = saved
        await self._save(UNDER_WAY, saved)
        self.latest = saved


class NodeSaves:
    """Of a graph or swarm."""

    def __init__(self, orchestrator: Orchestrator, run: Saved, save: Save) -> None:
        self._orchestrator = orchestrator
        self._save = save
        self._agents = {path: one for path, one in executors(orchestrator) if isinstance(one, Agent)}
        self._taken = {path: take_agent(agent) for path, agent in self._agents.items()}
        self._paths = {id(orchestrator): ""}
        self._batches = dict[int, set[str]]()
        self._begun = dict[int, set[str]]()
        """The nodes of each batch that have begun."""
        self.latest = run
        self._watch(orchestrator)
        for path, one in executors(orchestrator):
            if isinstance(one, Graph | Swarm):
                self._paths[id(one)] = f"{path}/"
                self._watch(one)

    def _watch(self, orchestrator: Orchestrator) -> None:
        orchestrator.hooks.add_callback(BeforeNodeCallEvent, self._begins, order=HookOrder.SDK_FIRST)
        orchestrator.hooks.add_callback(AfterNodeCallEvent, self._ended, order=HookOrder.SDK_FIRST)

    def state(self) -> State:
        self._taken = {path: take_agent(agent) for path, agent in self._agents.items()}
        return take_orchestrator(self._orchestrator, self._taken, self._batches)

    def _begins(self, event: BeforeNodeCallEvent) -> None:
        graph = event.source
        if not isinstance(graph, Graph):
            return
        begun = self._begun.setdefault(id(graph), set())
        # No node begins twice in a batch, and a batch is known before the first of it begins.
        if event.node_id in begun or event.node_id not in self._batches.get(id(graph), ()):
            self._batches[id(graph)] = batch_of(graph)
            begun.clear()
        begun.add(event.node_id)

    async def _ended(self, event: AfterNodeCallEvent) -> None:
        source = event.source
        if has_failed(self._orchestrator) or (
            isinstance(source, Graph) and source.nodes[event.node_id].execution_status is not Status.COMPLETED
        ):
            return  # it has failed, or was cancelled in the middle of something
        path = self._paths[id(event.source)] + event.node_id
        if path in self._agents:
            # The other nodes may be in the middle of something, and will begin again with what they had before.
            self._taken[path] = take_agent(self._agents[path])
        if source is not self._orchestrator and not source.serialize_state()["next_nodes_to_execute"]:
            # A graph that is a node is over with this one, and its node is about to say so: stored in between, it would
            # begin anew.
            return
        saved = replace(self.latest, state=take_orchestrator(self._orchestrator, self._taken, self._batches))
        await self._save(UNDER_WAY, saved)
        self.latest = saved
