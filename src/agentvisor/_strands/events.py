"""What an agent's stream says, as events for the run's readers: named fields only, and JSON only.

Strands' events carry live objects (the agent, spans, a model) beside what they say, and whatever the invocation was
given; so each kind is listed here with the fields that are shown, and other kinds are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from strands.types.session import encode_bytes_values

Event = Mapping[str, object]

MODES = frozenset(
    {"values", "updates", "messages", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "tools"}
    | {"content-blocks"}  # its messages have none: the host makes them of what they say
)
"""Stream modes that may be asked for; the last three, which LangGraph's clients ask for, have no events here."""

_NODE_EVENTS: Mapping[str, tuple[str, ...]] = {
    "multiagent_node_start": ("node_id", "node_type"),
    "multiagent_node_cancel": ("node_id", "message"),
    "multiagent_handoff": ("from_node_ids", "to_node_ids", "message"),
}


def to_json(value: object) -> bytes:
    """Total: what JSON does not have is shown as text."""
    plain = encode_bytes_values(value)
    try:
        return json.dumps(plain, default=repr, allow_nan=False, ensure_ascii=False).encode("utf-8", "backslashreplace")
    except (TypeError, ValueError, RecursionError):
        return json.dumps(repr(value)).encode()


@dataclass
class Shown:
    """Turns the events of one attempt into what is shown of them."""

    name: str
    """Of the agent; what nodes say is under the node's."""
    prefix: str
    """Begins the ids of messages: no two attempts may share one."""
    agent_tools: frozenset[str] = frozenset()
    """Tools that are agents: what they tell are events like these."""
    _messages: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])
    """Of each node, which may speak at once: its messages so far, each as the ids of its tool calls."""

    def of(self, event: Event, node: str = "") -> Iterator[tuple[str, object]]:
        """What is shown of an event: mode and payload."""
        kind = event.get("type")
        if kind == "multiagent_node_stream":
            path = f"{node}/{event['node_id']}" if node else str(event["node_id"])
            yield from self.of(cast("Event", event["event"]), path)
            return
        told = self._told(event)
        if told is not None:
            yield "custom", {**told, **({"node": node} if node else {})}
        yield from self._as_messages(event, node)

    # --- custom -----------------------------------------------------------------------------------------------------

    def _told(self, event: Event) -> dict[str, object] | None:
        kind = str(event.get("type", ""))
        if kind in _NODE_EVENTS:
            return {"type": kind, **{name: event[name] for name in _NODE_EVENTS[kind] if name in event}}
        told = next((told for name, told in _TOLD.items() if name in event), None)
        if told is not None:
            return told(event)
        return self._tool_stream(cast("Event", event["tool_stream_event"])) if "tool_stream_event" in event else None

    def _tool_stream(self, event: Event) -> dict[str, object] | None:
        data, use = event.get("data"), _use(event.get("tool_use"))
        if isinstance(data, Mapping) and use.get("name") in self.agent_tools:
            data = self._told(cast("Event", data))
            if data is None:
                return None
        return {"type": "tool_stream", "tool_use": use, "data": data}

    # --- messages and updates ---------------------------------------------------------------------------------------

    def _as_messages(self, event: Event, node: str) -> Iterator[tuple[str, object]]:
        about = {"langgraph_node": node or self.name}
        said = self._messages.setdefault(node, [])
        chunk = {"type": "AIMessageChunk", "id": "-".join(filter(None, (self.prefix, node, str(len(said)))))}
        if "messageStart" in _raw(event):
            said.append([])
        elif "data" in event:
            yield "messages", [{**chunk, "content": event["data"]}, about]
        elif "current_tool_use" in event:
            call = _call_chunk(event, said[-1] if said else [])
            yield "messages", [{**chunk, "content": "", "tool_call_chunks": [call]}, about]
        elif isinstance(event.get("message"), Mapping):
            message = cast("Event", event["message"])
            yield "updates", {node or self.name: {"messages": [message]}}
            yield from (("messages", [one, about]) for one in _results(message))


def _call_chunk(event: Event, calls: list[str]) -> dict[str, object]:
    """What has come of a tool call; `calls`: those of its message so far."""
    use, delta = cast("Event", event["current_tool_use"]), cast("Event", event.get("delta") or {})
    id_ = str(use.get("toolUseId"))
    first = id_ not in calls
    if first:
        calls.append(id_)
    return {
        "type": "tool_call_chunk",
        "index": calls.index(id_),
        "id": id_ if first else None,
        "name": use.get("name") if first else None,
        "args": cast("Event", delta.get("toolUse") or {}).get("input", ""),
    }


def _raw(event: Event) -> Event:
    """The model's own event, where it is one."""
    raw = event.get("event")
    return cast("Event", raw) if isinstance(raw, Mapping) else {}


def _results(message: Event) -> Iterator[dict[str, object]]:
    for block in cast("list[Event]", message.get("content") or []):
        if "toolResult" not in block:
            continue
        result = cast("Event", block["toolResult"])
        content = cast("list[Event]", result.get("content") or [])
        yield {
            "type": "tool",
            "id": f"result-{result.get('toolUseId')}",
            "tool_call_id": result.get("toolUseId"),
            "status": result.get("status"),
            "content": "\n".join(str(part["text"]) for part in content if "text" in part) or content,
        }


def _use(use: object) -> dict[str, object]:
    given = cast("Event", use if isinstance(use, Mapping) else {})
    return {name: given[name] for name in ("toolUseId", "name", "input") if name in given}


def _asked(interrupts: object) -> list[dict[str, object]]:
    return [
        {"id": _field(one, "id"), "name": _field(one, "name"), "reason": _field(one, "reason")}
        for one in cast("list[object]", interrupts or [])
    ]


def _field(value: object, *path: str) -> object:
    for name in path:
        value = getattr(value, name, None)
    return value


def _node_stop(event: Event) -> dict[str, object]:
    status = _field(event["node_result"], "status", "value")
    return {"type": "multiagent_node_stop", "node_id": event["node_id"], "status": status}


def _node_interrupt(event: Event) -> dict[str, object]:
    return {
        "type": "multiagent_node_interrupt",
        "node_id": event.get("node_id"),
        "interrupts": _asked(event["interrupts"]),
    }


def _cancelled(event: Event) -> dict[str, object]:
    told = cast("Event", event["tool_cancel_event"])
    return {"type": "tool_cancel", "tool_use": _use(told.get("tool_use")), "message": told.get("message")}


def _interrupted(event: Event) -> dict[str, object]:
    told = cast("Event", event["tool_interrupt_event"])
    return {
        "type": "tool_interrupt",
        "tool_use": _use(told.get("tool_use")),
        "interrupts": _asked(told.get("interrupts")),
    }


_TOLD: Mapping[str, Callable[[Event], dict[str, object]]] = {
    "node_result": _node_stop,
    "interrupts": _node_interrupt,
    "data": lambda event: {"type": "text", "text": event["data"]},
    "reasoningText": lambda event: {"type": "reasoning", "text": event["reasoningText"]},
    "current_tool_use": lambda event: {"type": "tool_use", "tool_use": _use(event["current_tool_use"])},
    "tool_cancel_event": _cancelled,
    "tool_interrupt_event": _interrupted,
    "message": lambda event: {"type": "message", "message": event["message"]},
    "force_stop": lambda event: {"type": "force_stop", "reason": str(event.get("force_stop_reason", ""))},
    "event_loop_throttled_delay": lambda event: {"type": "throttled", "delay": event["event_loop_throttled_delay"]},
}
"""What is shown of an event that has a field of that name."""
