"""Answers of tools that finished in a super-step that was abandoned: LangGraph drops them when new input comes.

They are stored, as pending writes of the checkpoint that the abandoned super-step began from: an ancestor of the
present one, which is looked for by the way of the parents.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from agentvisor._langgraph.repair import unanswered

Answers = dict[str, ToolMessage]
_Search = Generator[RunnableConfig, CheckpointTuple | None, Answers]

CHECKPOINTER = "__pregel_checkpointer"
"""Where LangGraph gives a node the graph's saver, for subgraphs to use."""

_MOST_ANCESTORS = 100
"""An abandoned super-step is a few checkpoints away; who asks about an old call does not read a whole history."""


def find_answers(config: RunnableConfig, channel: str, wanted: set[str]) -> Answers:
    """The answers to these calls that were stored and never applied; called in a node, with its config."""
    saver, search = _saver(config), _search(config, channel, wanted)
    if saver is None:
        return {}
    try:
        asked = next(search)
        while True:
            asked = search.send(saver.get_tuple(asked))
    except StopIteration as end:
        return cast("Answers", end.value)


async def afind_answers(config: RunnableConfig, channel: str, wanted: set[str]) -> Answers:
    """The same, asking the saver asynchronously."""
    saver, search = _saver(config), _search(config, channel, wanted)
    if saver is None:
        return {}
    try:
        asked = next(search)
        while True:
            asked = search.send(await saver.aget_tuple(asked))
    except StopIteration as end:
        return cast("Answers", end.value)


def _search(config: RunnableConfig, channel: str, wanted: set[str]) -> _Search:
    """Yield the configs of checkpoints to read, from the node's own upwards, while they hold one of the calls."""
    found: Answers = {}
    asked: RunnableConfig | None = _own_checkpoint(config)
    for _ in range(_MOST_ANCESTORS):
        if asked is None or found.keys() == wanted:
            break
        checkpoint = yield asked
        if checkpoint is None:
            break
        messages = _messages(checkpoint, channel)
        if messages is not None and not wanted & unanswered(messages):
            # The calls were made after it.
            break
        for _task, where, value in checkpoint.pending_writes or ():
            if where == channel:
                found |= {one.tool_call_id: one for one in _tool_messages(value) if one.tool_call_id in wanted}
        asked = checkpoint.parent_config
    return found


def _own_checkpoint(config: RunnableConfig) -> RunnableConfig:
    """Of the graph whose node has this config; its latest, where its own is not named."""
    configurable: Mapping[str, object] = config.get("configurable", {})
    namespace = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    ids = cast("Mapping[str, str]", configurable.get("checkpoint_map", {}))
    named = {"checkpoint_id": ids[namespace]} if namespace in ids else {}
    return {"configurable": {"thread_id": configurable.get("thread_id"), "checkpoint_ns": namespace, **named}}


def _saver(config: RunnableConfig) -> BaseCheckpointSaver[str] | None:
    saver: object = config.get("configurable", {}).get(CHECKPOINTER)
    return cast("BaseCheckpointSaver[str]", saver) if isinstance(saver, BaseCheckpointSaver) else None


def _messages(checkpoint: CheckpointTuple, channel: str) -> list[BaseMessage] | None:
    """None where the checkpoint does not hold the channel's value (a DeltaChannel's is in many writes)."""
    value: object = checkpoint.checkpoint["channel_values"].get(channel)
    if not isinstance(value, list):
        return None
    return [one for one in cast("list[object]", value) if isinstance(one, BaseMessage)]


def _tool_messages(value: object) -> list[ToolMessage]:
    written = cast("list[object]", value) if isinstance(value, list) else [value]
    return [one for one in written if isinstance(one, ToolMessage)]
