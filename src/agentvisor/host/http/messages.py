"""Adds up the chunks of a message as they come, so that a client that wants whole messages sees them grow.

Works on the JSON of LangChain's messages by LangChain's rules: text is joined, list entries meet by their `index`,
usage is summed, tool calls are read from what has come of their arguments. A finished message replaces its chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from agentvisor.host.http.partial_json import NotJson, partial
from agentvisor.host.render_typed import Json

Message = dict[str, Json]

_TYPES = {
    "AIMessageChunk": "ai",
    "HumanMessageChunk": "human",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "FunctionMessageChunk": "function",
    "ChatMessageChunk": "chat",
}
_CHUNK_FIELDS = ("tool_call_chunks", "chunk_position")
_SAME = ("id", "output_version", "model_provider")
"""Texts that name something: the same twice is not joined."""
_LATEST = ("index", "created", "timestamp")
"""Numbers that are not counts."""


@dataclass(slots=True)
class Accumulated:
    """The messages of one run's stream so far."""

    messages: dict[str, Message] = field(default_factory=dict[str, Message])

    def add(self, data: Json) -> list[tuple[str, Json]]:
        """`[chunk, metadata]` of a messages event as events of whole messages: (name, data)."""
        match data:
            case [dict() as chunk, metadata]:
                return self._add(chunk, metadata)
            case _:
                return []

    def _add(self, chunk: Message, metadata: Json) -> list[tuple[str, Json]]:
        name = str(chunk.get("id") or "")
        known = self.messages.get(name)
        is_chunk = chunk.get("type") in _TYPES
        whole = added(known, chunk) if known is not None and is_chunk else chunk
        self.messages[name] = whole
        events: list[tuple[str, Json]] = []
        if known is None:
            events.append(("messages/metadata", {name: {"metadata": metadata}}))
        events.append(("messages/partial" if is_chunk else "messages/complete", [shown(whole)]))
        return events


def shown(message: Message) -> Message:
    """A message that is no chunk any more."""
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return message
    kept = {name: value for name, value in message.items() if name not in _CHUNK_FIELDS}
    return {**kept, "type": _TYPES[kind], **_tool_calls(message.get("tool_call_chunks"))}


def _tool_calls(chunks: Json) -> Message:
    """Tool calls as far as their arguments can be read."""
    if not isinstance(chunks, list) or not chunks:
        return {}
    calls, invalid = list[Json](), list[Json]()
    for chunk in chunks:
        if not isinstance(chunk, dict):
            continue
        name, arguments, call = chunk.get("name"), chunk.get("args"), chunk.get("id")
        try:
            read = partial(arguments) if isinstance(arguments, str) and arguments else {}
        except NotJson:
            read = None
        if isinstance(read, dict):
            calls.append({"name": name or "", "args": read, "id": call, "type": "tool_call"})
        else:
            invalid.append({"name": name, "args": arguments, "id": call, "error": None, "type": "invalid_tool_call"})
    return {"tool_calls": calls, "invalid_tool_calls": invalid}


def added(left: Message, right: Message) -> Message:
    """Two chunks of one message as one."""
    merged = _merged(left, right, skip=("content", "type", "usage_metadata", "id"))
    merged["content"] = _content(left.get("content"), right.get("content"))
    if left.get("usage_metadata") is not None or right.get("usage_metadata") is not None:
        merged["usage_metadata"] = _sum(left.get("usage_metadata"), right.get("usage_metadata"))
    return merged


def _content(left: Json, right: Json) -> Json:
    match left, right:
        case (None, _) | (_, None):
            return right if left is None else left
        case str(), str():
            return left + right
        case str(), list():
            return [left, *right]
        case list(), list():
            return _joined(left, right)
        case [*before, str() as last], str():
            return [*before, last + right]
        case list(), str():
            return [*left, right] if left and right else left
        case _:
            return right


def _merged(left: Message, right: Message, skip: tuple[str, ...] = ()) -> Message:
    merged = dict(left)
    for name, value in right.items():
        if name in skip or value is None:
            continue
        before = merged.get(name)
        match before, value:
            case None, _:
                merged[name] = value
            case str(), str():
                named = (name in _SAME and before == value) or name == "chunk_position"
                merged[name] = value if named or (name == "index" and before.startswith("lc_")) else before + value
            case dict(), dict():
                merged[name] = _merged(before, value)
            case list(), list():
                merged[name] = _joined(before, value)
            case bool(), _:
                merged[name] = value
            case int() | float(), int() | float() if before != value and name not in _LATEST:
                merged[name] = before + value
            case _:
                merged[name] = value
    return merged


def _joined(left: list[Json], right: list[Json]) -> list[Json]:
    """Entries with the same index are one, unless their ids say that they are two."""
    joined = list(left)
    for entry in right:
        place = next((at for at, known in enumerate(joined) if _meets(known, entry)), None)
        if place is None:
            joined.append(entry)
        else:
            joined[place] = _merged(cast("Message", joined[place]), cast("Message", entry), skip=("type",))
    return joined


def _meets(left: Json, right: Json) -> bool:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return False
    index = right.get("index")
    if not isinstance(index, int) and not (isinstance(index, str) and index.startswith("lc_")):
        return False
    one, other = left.get("id"), right.get("id")
    return left.get("index") == index and (not one or not other or one == other)


def _sum(left: Json, right: Json) -> Json:
    match left, right:
        case None, _:
            return right
        case _, None:
            return left
        case dict(), dict():
            return {name: _sum(left.get(name), right.get(name)) for name in {**left, **right}}
        case int() | float(), int() | float():
            return left + right
        case _:
            return right
