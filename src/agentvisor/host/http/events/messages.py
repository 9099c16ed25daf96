"""Messages as they are being written: each begins, its content blocks begin, grow and end, it ends.

Made from the pieces that an agent's process sends (`[piece, metadata]`, LangChain's JSON). Of a message's last piece
LangChain says that it is that; where a framework does not, the message ends with the task that wrote it, or the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentvisor.host.http.events import blocks
from agentvisor.host.http.events.blocks import Block
from agentvisor.host.http.events.told import Told
from agentvisor.host.render_typed import Json

RESTARTED = "the agent was restarted before the message was whole"


@dataclass(slots=True)
class _Open:
    """A message of which more may come."""

    id: str
    namespace: tuple[str, ...]
    node: str | None
    task: str
    blocks: dict[tuple[Json, ...], tuple[int, Block]] = field(default_factory=dict[tuple[Json, ...], tuple[int, Block]])
    usage: Block = field(default_factory=dict[str, Json])
    metadata: Block = field(default_factory=dict[str, Json])


class Messages:
    """The messages of a run."""

    def __init__(self) -> None:
        self._open: dict[tuple[tuple[str, ...], str], _Open] = {}
        self._done: set[tuple[tuple[str, ...], str]] = set()
        self._unnamed = 0

    def add(self, namespace: Sequence[str], data: Json) -> Iterator[Told]:
        """What follows from a piece, or from a whole message that was not told of yet."""
        match data:
            case [dict() as message, metadata]:
                about: Block = metadata if isinstance(metadata, dict) else {}
                yield from self._add(tuple(namespace), message, about)
            case _:
                pass

    def _add(self, namespace: tuple[str, ...], message: Block, about: Block) -> Iterator[Told]:
        kind = message.get("type")
        if kind not in ("AIMessageChunk", "ai"):
            return  # what people and tools say is in the values
        named = message.get("id")
        if not isinstance(named, str) or not named:
            self._unnamed += 1
            named = f"message-{self._unnamed}"
        key = (namespace, named)
        if key in self._done:
            return
        known = self._open.get(key)
        if known is not None and kind == "ai":
            # The whole of what came in pieces.
            yield from self._finish(key, known, message)
            return
        if known is None:
            known = self._open[key] = _Open(named, namespace, _text(about, "langgraph_node"), _task_of(about))
            yield self._told(known, {"event": "message-start", "role": "ai", "id": named, **_maker(message)})
        yield from self._pieces(known, message)
        if kind == "ai" or message.get("chunk_position") == "last":
            yield from self._finish(key, known, message)

    def _pieces(self, known: _Open, message: Block) -> Iterator[Told]:
        _note(known, message)
        for position, piece in enumerate(blocks.blocks_of(message)):
            key = blocks.key_of(piece, position)
            if key in known.blocks:
                index, before = known.blocks[key]
                known.blocks[key] = (index, blocks.joined(before, piece))
            else:
                index = len(known.blocks)
                known.blocks[key] = (index, piece)
                begun: Block = {"event": "content-block-start", "index": index, "content": blocks.beginning(piece)}
                yield self._told(known, begun)
            delta = blocks.delta_of(piece)
            if delta is not None:
                yield self._told(known, {"event": "content-block-delta", "index": index, "delta": delta})

    def _finish(self, key: tuple[tuple[str, ...], str], known: _Open, last: Block | None = None) -> Iterator[Told]:
        if last is not None and last.get("type") == "ai":
            known.usage, known.metadata = {}, {}
            _note(known, last)
        for index, block in known.blocks.values():
            whole: Block = {"event": "content-block-finish", "index": index, "content": blocks.finished(block)}
            yield self._told(known, whole)
        end: Block = {"event": "message-finish"}
        if known.usage:
            end["usage"] = known.usage
        if known.metadata:
            end["metadata"] = known.metadata
        yield self._told(known, end)
        self._open.pop(key, None)
        self._done.add(key)

    def task_ended(self, namespace: Sequence[str], task: str) -> Iterator[Told]:
        """Nothing comes any more of the messages that the task was writing."""
        here = tuple(namespace)
        for key, known in [*self._open.items()]:
            if known.namespace == here and known.task == task:
                yield from self._finish(key, known)

    def end(self) -> Iterator[Told]:
        """Nothing comes any more of any message."""
        for key, known in [*self._open.items()]:
            yield from self._finish(key, known)

    def cut(self) -> Iterator[Told]:
        """The process that was writing is gone: what it had begun, another begins anew."""
        for known in self._open.values():
            yield self._told(known, {"event": "error", "message": RESTARTED, "code": "restarted"})
        self._open.clear()

    @staticmethod
    def _told(known: _Open, data: Block) -> Told:
        # Of several that are written at once in a namespace, LangGraph's client in Python tells the events apart by
        # message_id, the one in JavaScript by run_id and node.
        ids: Block = {"run_id": known.id} if "id" in data else {"message_id": known.id, "run_id": known.id}
        return Told("messages", {**data, **ids}, known.namespace, known.node)


def mirrored(namespace: Sequence[str], data: Block) -> Iterator[Told]:
    """A tool's result as a message below its call, as LangGraph's server tells it to who follows messages only."""
    output, call = data.get("output"), data.get("tool_call_id")
    if not isinstance(output, dict) or not isinstance(call, str):
        return
    named = output.get("id")
    content = output.get("content")
    text = content if isinstance(content, str) else ""
    parts = content if isinstance(content, list) else []
    text += "".join(str(one.get("text") or "") for one in parts if isinstance(one, dict))
    place = (*namespace, f"tools:{call}")
    start: Block = {"event": "message-start", "role": "tool", "tool_call_id": call}
    start["id"] = named if isinstance(named, str) and named else f"tool-{call}"
    yield Told("messages", start, place)
    empty: Block = {"type": "text", "text": ""}
    yield Told("messages", {"event": "content-block-start", "index": 0, "content": empty}, place)
    delta: Block = {"type": "text-delta", "text": text}
    yield Told("messages", {"event": "content-block-delta", "index": 0, "delta": delta}, place)
    whole: Block = {"type": "text", "text": text}
    yield Told("messages", {"event": "content-block-finish", "index": 0, "content": whole}, place)
    yield Told("messages", {"event": "message-finish"}, place)


def _note(known: _Open, message: Block) -> None:
    usage, metadata = message.get("usage_metadata"), message.get("response_metadata")
    if isinstance(usage, dict):
        known.usage = _sum(known.usage, usage)
    if isinstance(metadata, dict):
        known.metadata = {**known.metadata, **metadata}


def _sum(left: Block, right: Block) -> Block:
    total = dict(left)
    for name, value in right.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = _sum(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, int | float) and isinstance(before, int | float):
            total[name] = before + value
        elif value is not None:
            total[name] = value
    return total


def _maker(message: Block) -> Block:
    """Who has made the message, where that is known."""
    known = message.get("response_metadata")
    if not isinstance(known, dict):
        return {}
    named = {"provider": known.get("model_provider"), "model": known.get("model_name")}
    found: Block = {name: value for name, value in named.items() if value is not None}
    return {"metadata": found} if found else {}


def _text(about: Block, name: str) -> str | None:
    value = about.get(name)
    return value if isinstance(value, str) else None


def _task_of(about: Block) -> str:
    """The task that writes, from the namespace that LangGraph would give to a subgraph of it."""
    place = _text(about, "langgraph_checkpoint_ns") or _text(about, "checkpoint_ns") or ""
    return place.rpartition("|")[2].partition(":")[2]
