"""Updates the state of a thread with its graph: LangGraph's own update_state decides, on AgentVisor's checkpointer.

The host holds back what is stored here until this process has said that all of it is done.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import StateUpdate

from agentvisor._langgraph import puts
from agentvisor.client.known import CheckpointName
from agentvisor.client.socketpair import Channel
from agentvisor.core.errors import InvalidInput, NotFound
from agentvisor.guest.cancellation import Cancellation
from agentvisor.guest.runners.langgraph_graph import Graph, graph_of, names, with_our_checkpointer
from agentvisor.guest.runners.langgraph_projection import projection_of
from agentvisor.guest.runners.langgraph_resume import command_of
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.v1.guest_pb2 import AgentTask, Outcome
from agentvisor.protocol.v1.store_pb2 import StoreRequest


def update_graph(agent: object, task: AgentTask, channel: Channel, cancellation: Cancellation) -> Outcome:
    """Apply the task's super-steps; COMPLETED, with the address of the checkpoint that they have led to."""
    return cancellation.run(_updated(agent, task, channel))


async def _updated(agent: object, task: AgentTask, channel: Channel) -> Outcome:
    config = _config(task)
    stored: list[CheckpointName] = []
    async with AsyncExitStack() as stack:
        graph = with_our_checkpointer(await graph_of(agent, config, stack))
        if not graph.checkpointer:
            raise InvalidInput("this graph keeps no checkpoints (checkpointer=False): there is no state to update")
        await _require_base(graph, config)
        with puts.telling(lambda name, is_stored: stored.append(name) if is_stored else None):
            reached = await graph.abulk_update_state(config, _supersteps(task))
        for name in stored:
            await _project(graph, name, channel)
    address = cast("dict[str, object]", reached.get("configurable", {}))
    shown = {key: address[key] for key in ADDRESS if key in address}
    return Outcome(kind=Outcome.KIND_COMPLETED, output=json.dumps(shown).encode())


ADDRESS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
"""What of a config names a checkpoint."""


def _config(task: AgentTask) -> RunnableConfig:
    """The checkpoint to begin from; metadata as LangGraph's server gives it."""
    spec = task.spec
    address: dict[str, object] = {"thread_id": task.thread_id, "checkpoint_ns": spec.checkpoint_ns}
    if spec.checkpoint_id:
        address["checkpoint_id"] = spec.checkpoint_id
    if spec.checkpoint_map:
        address["checkpoint_map"] = json.loads(spec.checkpoint_map)
    return RunnableConfig(configurable=address, metadata={"graph_id": spec.agent, "thread_id": task.thread_id})


async def _require_base(graph: Graph, config: RunnableConfig) -> None:
    """LangGraph would begin with an empty state where the checkpoint is not there."""
    address, saver = config.get("configurable", {}), graph.checkpointer
    if "checkpoint_id" not in address or not isinstance(saver, BaseCheckpointSaver):
        return
    if await saver.aget_tuple(config) is None:
        raise NotFound(f"the thread has no checkpoint {address['checkpoint_id']}")


def _supersteps(task: AgentTask) -> list[list[StateUpdate]]:
    given = cast("list[list[Mapping[str, object]]]", json.loads(task.spec.supersteps))
    return [[_update(one) for one in superstep] for superstep in given]


def _update(given: Mapping[str, object]) -> StateUpdate:
    command = given.get("command")
    values = command_of(cast("Mapping[str, object]", command)) if isinstance(command, Mapping) else given.get("values")
    return StateUpdate(cast("dict[str, object] | None", values), cast("str | None", given.get("as_node")))


async def _project(graph: Graph, name: CheckpointName, channel: Channel) -> None:
    """Tell the host what follows a new checkpoint: a stream of the graph would have told it."""
    address = {"thread_id": name.thread, "checkpoint_ns": name.namespace, "checkpoint_id": name.checkpoint_id}
    snapshot = await graph.aget_state({"configurable": address}, subgraphs=False)
    values: object = snapshot.values
    below = list(cast("dict[str, object]", values)) if isinstance(values, dict) else []
    channels = below if name.namespace else names(graph.stream_channels_asis)
    request = StoreRequest(project=projection_of(name.namespace, name.checkpoint_id, snapshot, channels))
    reply = await asyncio.wrap_future(channel.call(request))
    if reply.HasField("error"):
        raise from_error(reply.error)
