"""Runs a LangGraph agent: a compiled graph, a builder, or a function that makes one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained

from agentvisor._langgraph import puts
from agentvisor.client.socketpair import Channel
from agentvisor.client.waiting import has_notes, still_waiting
from agentvisor.core.errors import InvalidInput
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.events import Events
from agentvisor.guest.runners.langgraph_backlog import Backlog
from agentvisor.guest.runners.langgraph_blocks import CONTENT_BLOCKS, with_content_blocks
from agentvisor.guest.runners.langgraph_breakpoints import INTERRUPT, stop_of
from agentvisor.guest.runners.langgraph_config import config_of
from agentvisor.guest.runners.langgraph_drain import RootControl
from agentvisor.guest.runners.langgraph_events import EVENTS, debug_shown, with_events
from agentvisor.guest.runners.langgraph_graph import (
    Graph,
    graph_of,
    interrupts_of,
    names,
    with_our_checkpointer,
    with_our_store,
)
from agentvisor.guest.runners.langgraph_json import to_json
from agentvisor.guest.runners.langgraph_projection import Projector
from agentvisor.guest.runners.langgraph_resume import invocation, waiting_at_head
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome

MODES = {
    "values": "values",
    "updates": "updates",
    "messages": "messages",
    "messages-tuple": "messages",
    "custom": "custom",
    "tasks": "tasks",
    "checkpoints": "checkpoints",
    "debug": "debug",
    "events": EVENTS,
    "tools": "tools",
}
"""A caller's stream mode -> pregel's."""

OWN_MODES = {"checkpoints", "tasks", "updates"}
"""What the runner reads itself: projections, and that the graph was interrupted."""

Event = tuple[tuple[str, ...], str, object]
"""Namespace, pregel's mode, payload."""


def run_graph(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Run the graph on the run's thread; COMPLETED, or PAUSED where it stopped at an interrupt."""
    unknown = [mode for mode in task.spec.stream_modes if mode not in MODES and mode != CONTENT_BLOCKS]
    if unknown:
        raise InvalidInput(f"stream mode {unknown[0]!r} is not known: use {', '.join(MODES)}")
    return cancellation.run(_Run(task, channel).run(agent))


class _Run:
    def __init__(self, task: AgentTask, channel: Channel) -> None:
        self._task = task
        self._spec = task.spec
        self._channel = channel
        self._events = Events(channel)
        self._backlog = Backlog()
        self._asked = [mode for mode in dict.fromkeys(task.spec.stream_modes) if mode != CONTENT_BLOCKS]
        self._content_blocks = CONTENT_BLOCKS in task.spec.stream_modes
        self._paused = False
        self._values: object = None

    async def run(self, agent: object) -> Outcome:
        failure: BaseException = AssertionError()
        async with AsyncExitStack() as stack:
            try:
                return await self._run(agent, stack)
            except BaseException as error:
                failure = error
                raise
        # A context manager that made the graph has swallowed it. It is the run's end all the same.
        raise failure

    async def _run(self, agent: object, stack: AsyncExitStack) -> Outcome:
        config = config_of(self._task)
        graph = with_our_store(with_our_checkpointer(await graph_of(agent, config, stack)))
        projector = Projector(self._channel.call, names(graph.stream_channels_asis))
        drained = False
        try:
            with puts.telling(self._backlog.put_ended):
                async for namespace, mode, payload in self._stream(graph, config, projector):
                    self._take(namespace, mode, payload, projector)
                    await self._backlog.until_room()
        except GraphDrained:
            drained = True
        finally:
            # Before the last word, whatever it will be.
            projector.release()
            self._events.flush()
        await asyncio.gather(*map(asyncio.wrap_future, projector.open()), return_exceptions=True)
        paused = not drained and (self._paused or bool(projector.next))
        if paused and graph.checkpointer and has_notes(self._task):
            ids = await waiting_at_head(graph, config)
            await asyncio.to_thread(still_waiting, self._channel, ids)
        if drained:
            return Outcome(kind=Outcome.KIND_DRAINED)
        return Outcome(
            kind=Outcome.KIND_PAUSED if paused else Outcome.KIND_COMPLETED,
            # A graph that keeps nothing has its result nowhere else.
            output=b"" if graph.checkpointer else to_json(self._values),
        )

    async def _stream(self, graph: Graph, config: RunnableConfig, projector: Projector) -> AsyncIterator[Event]:
        spec = self._spec
        given: object = json.loads(spec.input) if spec.input else None
        modes = OWN_MODES | {MODES[mode] for mode in self._asked} - {EVENTS}
        command: object = json.loads(spec.command) if spec.command else None
        call = await invocation(
            graph,
            config,
            given,
            command,
            run_id=self._task.run_id,
            attempt=self._task.attempt,
            answers=spec.answers,
        )
        before, after = _nodes(spec.interrupt_before), _nodes(spec.interrupt_after)
        if call.begun and (stands := await stop_of(graph, call.config, self._task.run_id, before, after)) is not None:
            projector.stands(stands, names(graph.stream_channels_asis))
            yield (), "updates", {INTERRUPT: ()}
            return
        if not graph.checkpointer:
            modes |= {"values"}
        stream_of = partial(with_events, graph, self._task) if EVENTS in self._asked else graph.astream
        stream = stream_of(
            call.input,
            call.config,
            context=json.loads(spec.context) if spec.context else None,
            stream_mode=sorted(modes),
            interrupt_before=before,
            interrupt_after=after,
            control=RootControl(self._channel),
            durability=(spec.durability or "sync") if graph.checkpointer else None,
            # Always: a subgraph's checkpoints are shown too. What the caller did not ask for is not sent.
            subgraphs=True,
        )
        async for event in stream:
            yield cast("Event", event)

    def _take(self, namespace: tuple[str, ...], mode: str, payload: object, projector: Projector) -> None:
        if mode == "checkpoints":
            told = cast("Mapping[str, Mapping[str, Mapping[str, str]]]", payload)
            projector.checkpoint(namespace, told)
            if not namespace and self._spec.durability == "async":
                self._backlog.made(told["config"]["configurable"]["checkpoint_id"])
        elif mode == "tasks":
            projector.task(namespace, cast("Mapping[str, object]", payload))
        elif mode != EVENTS:  # those come between a checkpoint and its tasks, too
            projector.release()
        if not namespace:
            self._take_of_root(mode, payload)
        if namespace and not self._spec.stream_subgraphs:
            return
        if mode == "messages" and self._content_blocks:
            payload = with_content_blocks(payload)
        for asked in self._asked:
            if MODES[asked] == mode:
                self._events.send(asked, namespace, to_json(debug_shown(payload) if mode == "debug" else payload))

    def _take_of_root(self, mode: str, payload: object) -> None:
        if mode == "values":
            self._values = payload
        if mode == "updates" and interrupts_of(payload) is not None:
            self._paused = True


def _nodes(listed: object) -> list[str] | Literal["*"] | None:
    nodes = list(cast("list[str]", listed))
    return "*" if nodes == ["*"] else (nodes or None)
