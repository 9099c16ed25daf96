"""The tool use as the scope of effects: the same key in another tool use is another effect."""

from __future__ import annotations

from typing import Any, cast

from strands.hooks import (
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.types.content import Message

from agentvisor._strands.paused import end_if_paused
from agentvisor.client import tool_scope


class ToolScope(HookProvider):
    """Tells effects apart by the tool use that they are in: `Agent(hooks=[ToolScope()])`.

    For agents whose messages are stored as they come, and which go on with `agent(None)`: there a tool use has the same
    id in each attempt. An agent that begins anew asks its model again, gets other ids, and its effects are other ones.
    """

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:  # noqa: ARG002 (Strands' signature)
        registry.add_callback(BeforeToolCallEvent, _enter)
        registry.add_callback(AfterToolCallEvent, _leave)
        # Strands calls the last one first, and none after one that raises.
        registry.add_callback(AfterToolsEvent, end_if_paused)
        registry.add_callback(AfterToolsEvent, _leave_all)
        registry.add_callback(BeforeModelCallEvent, end_if_paused)


def _enter(event: BeforeToolCallEvent[Any]) -> None:
    id_ = event.tool_use["toolUseId"]
    # A tool that code calls directly (agent.tool.pay()) has an id made up for that call: none that comes again.
    if any(_asks_for(message, id_) for message in reversed(cast("list[Message]", event.agent.messages))):
        tool_scope.enter(id(event.agent), id_)


def _leave(event: AfterToolCallEvent[Any]) -> None:
    tool_scope.leave(id(event.agent), event.tool_use["toolUseId"])


def _leave_all(event: AfterToolsEvent) -> None:
    """A tool that was interrupted has no event of its own."""
    tool_scope.leave(id(event.agent))


def _asks_for(message: Message, id_: str) -> bool:
    return any(block["toolUse"]["toolUseId"] == id_ for block in message["content"] if "toolUse" in block)
