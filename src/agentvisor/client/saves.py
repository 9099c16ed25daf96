"""The saves of a thread: one more state under a key, the latest, one by its id, or the list of them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from agentvisor.client.known import ChannelName, CheckpointName, Known
from agentvisor.client.operations import Operation
from agentvisor.client.put import NewCheckpoint, Put
from agentvisor.client.reads import load_values
from agentvisor.client.requests import value_of
from agentvisor.core import saves
from agentvisor.core.errors import Corrupt, InvalidInput, NotFound
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.v1 import store_pb2

JSON = "json"
"""The type of a save's value and record."""

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Saved:
    """A save, without its state."""

    id: str
    key: str
    created_at: datetime


def save(thread: str, key: str, state: bytes, run_id: str, *, known: Known, limits: Limits) -> Operation[str]:
    """Store JSON as the latest save of its key, and of the thread; its id."""
    latest = yield from _first(thread, store_pb2.ListCheckpoints(saves=True))
    after = latest.checkpoint.checkpoint_id if latest is not None else ""
    name = CheckpointName(
        thread, saves.namespace_of(key), saves.new_id(time.time_ns(), secrets.randbits(62), after=after)
    )
    metadata = {"source": "save", "key": key} | ({"run_id": run_id} if run_id else {})
    new = NewCheckpoint(
        name=name,
        parent_id="",
        ts=datetime.now(UTC).isoformat(),
        record=(JSON, b"{}"),
        metadata=metadata_to_struct(metadata),
        versions={key: name.checkpoint_id},
        changed={key: (JSON, state)},
        unchanged=lambda _: None,
    )
    yield from Put(new, known, limits).run()
    return name.checkpoint_id


def load(thread: str, wanted: str, key: str | None, known: Known) -> Operation[object]:
    """The state of that id, or the latest where it is empty; None where nothing is saved.

    `NotFound` for an id that the thread does not have, `InvalidInput` for a checkpoint of a graph.
    """
    asked = store_pb2.ListCheckpoints(saves=True, checkpoint_id=wanted)
    if key is not None:
        asked.namespace = saves.namespace_of(key)
    found = yield from _first(thread, asked)
    if found is not None:
        return (yield from _state(thread, found, known))
    if key is None:
        yield from _refuse_graph(thread, wanted)
    if wanted:
        of_key = f" under key {key!r}" if key is not None else ""
        raise NotFound(
            f"{_place(thread)} has no save with the id {wanted[:80]!r}{of_key}: it may be another thread's, whose "
            "saves are never shown here, or older than the history that is kept",
            checkpoint_id=wanted[:80],
        )
    return None


def listed(thread: str, key: str | None, limit: int | None) -> Operation[list[Saved]]:
    """The thread's saves, or those of one key, the newest first."""
    asked = store_pb2.ListCheckpoints(saves=True)
    if key is not None:
        asked.namespace = saves.namespace_of(key)
    found: list[Saved] = []
    while limit is None or len(found) < limit:
        asked.limit = _PAGE if limit is None else min(_PAGE, limit - len(found))
        reply = yield store_pb2.StoreRequest(thread_id=thread, list=asked)
        page = [one.tuple.checkpoint for one in reply.listed.checkpoints]
        found.extend(_saved(page))
        if not page or (len(page) < asked.limit and not reply.listed.more):
            break
        asked.after_namespace, asked.after_id = page[-1].namespace, page[-1].checkpoint_id
    return found


def _saved(checkpoints: list[store_pb2.Checkpoint]) -> Iterator[Saved]:
    for one in checkpoints:
        yield Saved(one.checkpoint_id, saves.key_of(one.namespace), datetime.fromisoformat(one.ts))


def _first(thread: str, asked: store_pb2.ListCheckpoints) -> Operation[store_pb2.CheckpointTuple | None]:
    asked.limit = 1
    reply = yield store_pb2.StoreRequest(thread_id=thread, list=asked)
    found = reply.listed.checkpoints
    return found[0].tuple if found else None


def _state(thread: str, found: store_pb2.CheckpointTuple, known: Known) -> Operation[object]:
    checkpoint = found.checkpoint
    key = saves.key_of(checkpoint.namespace)
    blob = next((one.key for one in checkpoint.channels if one.channel == key), b"")
    if not blob:
        raise Corrupt(f"save {checkpoint.checkpoint_id} of {_place(thread)} holds no state")
    here = known.namespace_values(thread, checkpoint.namespace)
    loaded = yield from load_values(thread, [blob], here, {blob: value_of(checkpoint.namespace, key)})
    line = ChannelName(thread, checkpoint.namespace, key)
    if known.line(line) is None:
        known.set_line(line, loaded.line_to(blob))  # the next save is stored as a difference from this one
    return json.loads(loaded.values[blob].data)


def _refuse_graph(thread: str, wanted: str) -> Operation[None]:
    """S12: raise where what is asked for is a graph's."""
    found = yield from _first(thread, store_pb2.ListCheckpoints(checkpoint_id=wanted))
    if found is None:
        return
    what = f"checkpoint {wanted}" if wanted else "the latest checkpoint"
    raise InvalidInput(
        f"{what} of {_place(thread)} is a LangGraph checkpoint, which agentvisor.checkpoint.load does not read: use "
        "agentvisor.langgraph.AgentVisorCheckpointer, graph.get_state(config) or GET /threads/{thread_id}/state; "
        "values of your own beside a graph are kept by agentvisor.thread_state",
        checkpoint_id=found.checkpoint.checkpoint_id,
    )


def _place(thread: str) -> str:
    return f"thread {thread}" if thread else "this thread"
