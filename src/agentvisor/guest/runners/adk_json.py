"""ADK's events and inputs as JSON: what a caller gives, what is streamed, and what a run comes to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from google.adk.events.event import Event
from google.genai import types
from pydantic import ValidationError

from agentvisor.core.errors import InvalidInput
from agentvisor.protocol.metadata import Json

SHOWN = {
    "id": True,
    "author": True,
    "invocation_id": True,
    "timestamp": True,
    "branch": True,
    "content": True,
    "partial": True,
    "turn_complete": True,
    "error_code": True,
    "error_message": True,
    "output": True,
    "long_running_tool_ids": True,
    "usage_metadata": True,
    "actions": {"state_delta": True, "artifact_delta": True, "transfer_to_agent": True, "escalate": True},
}
"""The fields of an event that leave the process; others are ADK's own bookkeeping."""


def message_of(given: Json) -> types.Content:
    """The user's message: text, ADK's Content, a chat's `{"messages": [...]}` (its last), or any JSON as its text."""
    match given:
        case "":
            raise InvalidInput("the input is an empty text: ADK would ask the model with nothing", field="input")
        case str():
            return _text(given)
        case {"parts": list()}:
            try:
                # By JSON text: only then are bytes read as base64.
                return types.Content.model_validate_json(json.dumps(given)).model_copy(update={"role": "user"})
            except ValidationError as error:
                raise InvalidInput(f"input is not a Content of ADK: {error}", field="input") from error
        case {"messages": [*_, dict() as last]} if isinstance(last.get("content"), str | list):
            return _of_chat(last["content"])
        case _:
            return _text(json.dumps(given, ensure_ascii=False))


def _of_chat(content: Json) -> types.Content:
    if isinstance(content, str):
        return _text(content)
    blocks = cast("list[Json]", content)
    texts = [one.get("text") for one in blocks if isinstance(one, dict) and one.get("type") == "text"]
    if not texts or len(texts) < len(blocks):
        raise InvalidInput(
            "input.messages: of a chat's message the runner reads text; give other parts as a Content of ADK: "
            '{"parts": [...]}',
            field="input",
        )
    return types.Content(role="user", parts=[types.Part(text=str(text)) for text in texts])


def _text(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def shown(event: Event) -> bytes:
    """The event for whoever reads the stream."""
    # By ADK's own encoding: bytes as base64, state that is not JSON as its text.
    return event.model_dump_json(include=SHOWN, exclude_none=True, exclude_defaults=True).encode()


def update(event: Event) -> bytes:
    """The same, by its author."""
    return b"{%s:%s}" % (json.dumps(event.author).encode(), shown(event))


def chunk(event: Event) -> bytes:
    """Its text as a piece of a chat's message, or as the whole of it, with what it belongs to."""
    calls = [
        {"name": call.name, "args": call.args or {}, "id": call.id, "type": "tool_call"}
        for call in event.get_function_calls()
    ]
    kind = "AIMessageChunk" if event.partial else "ai"
    message = {"type": kind, "id": event.id, "name": event.author, "content": text_of(event), "tool_calls": calls}
    if event.partial:
        del message["tool_calls"]
    about = {"langgraph_node": event.author, "invocation_id": event.invocation_id, "branch": event.branch}
    return json.dumps([message, about]).encode()


def says_something(event: Event) -> bool:
    """Whether it is more than bookkeeping."""
    changed = event.actions.state_delta or event.actions.artifact_delta or event.actions.transfer_to_agent
    return has_parts(event) or event.output is not None or bool(changed) or event.error_code is not None


def has_parts(event: Event) -> bool:
    """Whether it has content."""
    return event.content is not None and bool(event.content.parts)


def text_of(event: Event) -> str:
    """What it says, without the model's thoughts."""
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def outcome_of(events: Sequence[Event], invocation_id: str) -> object:
    """What an invocation came to: the last output of a node, or the last text of an agent; None where there is none."""
    for event in reversed(events):
        if event.invocation_id != invocation_id or event.author == "user":
            continue
        if event.output is not None:
            return cast("object", event.output)
        if text := text_of(event):
            return text
    return None


def summary(state: Mapping[str, object], events: Sequence[Event], *, latest: int = 20) -> dict[str, object]:
    """A session as people read it: its state and what was said last."""
    said = [
        {"author": event.author, "text": text_of(event)}
        | ({"calls": [call.name for call in event.get_function_calls()]} if event.get_function_calls() else {})
        for event in events
        if says_something(event) and (text_of(event) or event.get_function_calls())
    ]
    return {"state": dict(state), "events": len(events), "said": said[-latest:]}
