"""What is told of a run of the OpenAI Agents SDK: of its events, which hold live objects, named fields as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from agents.stream_events import AgentUpdatedStreamEvent, RawResponsesStreamEvent, RunItemStreamEvent, StreamEvent

from agentvisor.guest import plain_json
from agentvisor.guest.runners.openai_agents_kept import field_of

MODES = {"values", "updates", "messages", "messages-tuple", "custom", "tasks", "checkpoints", "debug"}
"""What a caller may ask for. Of tasks, checkpoints and debug the SDK has nothing to tell."""

STREAMED = {"updates", "messages", "messages-tuple", "custom"}
"""With one of these the SDK is asked to stream."""

_KEPT = {"message_output_created", "tool_called", "tool_output", "handoff_requested", "handoff_occured",
         "reasoning_item_created"}  # fmt: skip


def told(event: StreamEvent, run_id: str, agent: str) -> Iterator[tuple[str, bytes]]:
    """Mode and data of what is told of an event; `agent` is the one that has the conversation."""
    match event:
        case RawResponsesStreamEvent(data=data) if getattr(data, "type", "") == "response.output_text.delta":
            text = str(getattr(data, "delta", ""))
            chunk = {"type": "AIMessageChunk", "id": run_id, "name": agent, "content": text}
            yield "messages", json.dumps([chunk, {"langgraph_node": agent}]).encode()
        case AgentUpdatedStreamEvent(new_agent=new):
            yield "custom", json.dumps({"type": "agent_updated", "agent": new.name}).encode()
        case RunItemStreamEvent(name=name, item=item) if name in _KEPT:
            yield "custom", json.dumps({"type": name, "agent": item.agent.name, **_about(item.raw_item)}).encode()
            # A form that JSON does not have is told by the run's error, where it is kept.
            with suppress(ValueError):
                yield "updates", plain_json.encode({item.agent.name: {"item": item.to_input_item()}}, "item")
        case _:
            pass


def _about(raw: Any) -> dict[str, str]:
    found = {"tool": field_of(raw, "name"), "tool_call_id": field_of(raw, "call_id")}
    return {ours: value for ours, value in found.items() if isinstance(value, str)}
