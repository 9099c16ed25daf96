"""The parts of a message as content blocks: how each begins, what a piece adds, how it reads when it is whole.

Works on the JSON of LangChain's messages. Text and reasoning come in pieces, a tool call in pieces of its arguments;
everything else comes whole. What LangChain knows of its providers' own parts, it has told beforehand, in the agent's
process (`content_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterator

from agentvisor.host.http.json import decode
from agentvisor.host.render_typed import Json

Block = dict[str, Json]

_TEXTS = {"text": "text", "reasoning": "reasoning"}
"""Blocks that are a text, and the field that it is in."""
_CALLS = {"tool_call_chunk": "tool_call", "server_tool_call_chunk": "server_tool_call"}
_HEAVY = ("args", "base64", "data", "output", "transcript", "value")
"""Told once, at the end."""
_EMPTY: dict[str, tuple[str, Json]] = {
    "tool_call": ("args", {}),
    "server_tool_call": ("args", {}),
    "non_standard": ("value", {}),
}
"""What a block of the type must not be without."""


def blocks_of(message: Block) -> list[Block]:
    """The parts of a message, or of a piece of one."""
    told = message.get("content_blocks")
    if isinstance(told, list):
        return [one for one in told if isinstance(one, dict)]
    found = list(_of_content(message.get("content")))
    calls = message.get("tool_call_chunks") or message.get("tool_calls")
    kind = "tool_call_chunk" if message.get("tool_call_chunks") else "tool_call"
    if isinstance(calls, list) and not any(one.get("type") == kind for one in found):
        found.extend({**one, "type": kind} for one in calls if isinstance(one, dict))
    return found


def _of_content(content: Json) -> Iterator[Block]:
    for part in content if isinstance(content, list) else [content]:
        match part:
            case str() if part:
                yield {"type": "text", "text": part}
            case {"type": "thinking", "thinking": str() as thought}:
                yield {"type": "reasoning", "reasoning": thought, **_index(part)}
            case {"type": "tool_use" | "input_json_delta"}:
                pass  # among the tool calls, too
            case {"type": str() as kind} if kind in _TEXTS or kind in ("image", "audio", "video", "file"):
                yield part
            case dict():
                yield {"type": "non_standard", "value": part, **_index(part)}
            case _:
                pass


def _index(part: Block) -> Block:
    return {"index": part["index"]} if "index" in part else {}


def key_of(block: Block, position: int) -> tuple[Json, ...]:
    """Tells a message's blocks apart, over all its pieces: by their index, or by what they are and where."""
    index = block.get("index")
    return (index,) if isinstance(index, int | str) else (block.get("type"), position)


def beginning(block: Block) -> Block:
    """The block before anything of it was said."""
    kind = str(block.get("type"))
    if kind in _TEXTS:
        return {**_without(block, _TEXTS[kind], "index", "annotations"), _TEXTS[kind]: ""}
    if kind in _CALLS:
        return {**_without(block, "args"), "args": ""}
    light = _without(block, *_HEAVY)
    if kind in _EMPTY:
        field, value = _EMPTY[kind]
        light[field] = value
    return light


def delta_of(block: Block) -> Block | None:
    """What a piece adds, where that can be added to."""
    kind = str(block.get("type"))
    if kind in _TEXTS:
        said = block.get(_TEXTS[kind])
        return {"type": f"{kind}-delta", _TEXTS[kind]: said} if said else None
    if kind in _CALLS:
        return {"type": "tool-call-delta", "args": block["args"]} if block.get("args") else None
    return None


def joined(before: Block, piece: Block) -> Block:
    """The block with another piece of it."""
    kind = str(before.get("type"))
    field = _TEXTS.get(kind) or ("args" if kind in _CALLS else None)
    if field is None or piece.get("type") != kind:
        return piece
    known = {name: value for name, value in piece.items() if value is not None}
    return {**before, **known, field: f"{before.get(field) or ''}{piece.get(field) or ''}"}


def finished(block: Block) -> Block:
    """The block as it is when all of it is there: of a call, its arguments are read."""
    kind = str(block.get("type"))
    if kind not in _CALLS:
        return block
    text = str(block.get("args") or "")
    rest = _without(block, "type", "args", *(() if kind.startswith("server") else ("index",)))
    try:
        arguments = decode(text.encode("utf-8", "backslashreplace"), "it") if text else {}
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return {"type": "invalid_tool_call", **rest, "args": text, "error": "the arguments are no JSON object"}
    return {"type": _CALLS[kind], **rest, "args": arguments}


def _without(block: Block, *fields: str) -> Block:
    return {name: value for name, value in block.items() if name not in fields}
