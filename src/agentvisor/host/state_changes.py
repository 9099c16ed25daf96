"""Thread state for callers inside the host: an entry with its value, and changes sent as any client's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, cast

from agentvisor.core.errors import Corrupt, InvalidInput, NotFound, Unavailable
from agentvisor.core.ids import BlobKey, ThreadId
from agentvisor.core.thread_state import StateEntry
from agentvisor.host.render_typed import Json
from agentvisor.host.threads import Threads
from agentvisor.protocol import blobs
from agentvisor.protocol.errors import from_error
from agentvisor.protocol.v1 import store_pb2

Call = Callable[[ThreadId, store_pb2.StoreRequest], Awaitable[store_pb2.StoreReply]]
"""Answers a request of a client outside of runs; errors come as replies."""


class EntryName(NamedTuple):
    """An entry of a thread's state."""

    thread_id: ThreadId
    scope: str
    key: str


def missing(name: EntryName) -> NotFound:
    """There is no such entry."""
    where = f" in scope {name.scope!r}" if name.scope else ""
    return NotFound(f"thread {name.thread_id} has no state {name.key!r}{where}", key=name.key)


_JSON = "json"
_OFF_LOOP = 256 * 1024
_TRIES = 10


async def read_entry(
    threads: Threads, name: EntryName, *, start: int = 0, limit: int | None = None
) -> tuple[StateEntry, Json]:
    """An entry and its value; of a list `limit` items from `start` on. `NotFound`, `Corrupt`."""
    for _ in range(_TRIES):
        entry = (await threads.state(name.thread_id)).store.state.get(name.scope, name.key)
        if entry is None:
            raise missing(name)
        first = max(0, start - entry.value_items)
        last = None if limit is None else max(0, start + limit - entry.value_items)
        items = entry.items[first:last]
        needs_value = entry.value is not None and (start < entry.value_items or not entry.is_list)
        wanted = [*items, *([entry.value] if needs_value and entry.value is not None else ())]
        found = await threads.blobs(name.thread_id, wanted)
        if all(one in found for one in wanted):  # else it was changed meanwhile
            return entry, await _shown(entry, items, found, start, limit)
    raise Unavailable(f"state {name.key!r} of thread {name.thread_id} changes too fast to be read: try again")


async def _shown(
    entry: StateEntry,
    items: list[BlobKey],
    found: Mapping[BlobKey, tuple[str, bytes]],
    start: int,
    limit: int | None,
) -> Json:
    def decoded() -> Json:
        blob = None if entry.value is None else found.get(entry.value)
        value = None if blob is None else _decoded(entry, blob)
        if not entry.is_list:
            return value
        ends = None if limit is None else start + limit
        before = cast("list[Json]", value)[start:ends] if blob is not None else []
        return [*before, *(_decoded(entry, found[one]) for one in items)]

    size = sum(len(data) for _, data in found.values())
    return await asyncio.to_thread(decoded) if size > _OFF_LOOP else decoded()


def _decoded(entry: StateEntry, blob: tuple[str, bytes]) -> Json:
    kind, data = blob
    if kind != _JSON:
        raise Corrupt(f"thread state {entry.key!r} cannot be read: {kind} {data[:200].decode(errors='replace')}")
    try:
        return cast("Json", json.loads(data))
    except ValueError as error:
        raise Corrupt(f"thread state {entry.key!r} is not JSON: {error}") from error


async def set_value(call: Call, name: EntryName, value: Json, expected: int | None) -> int:
    """Set a value; its revision."""
    blob = await _blob(value)
    change = store_pb2.ChangeThreadState(scope=name.scope, key=name.key, set=blob.key, blobs=[blob])
    return await _change(call, name.thread_id, change, expected)


async def append_item(call: Call, name: EntryName, item: Json, expected: int | None) -> int:
    """Append to a list; its revision."""
    blob = await _blob(item)
    change = store_pb2.ChangeThreadState(scope=name.scope, key=name.key, append=blob.key, blobs=[blob])
    return await _change(call, name.thread_id, change, expected)


async def delete_entry(call: Call, name: EntryName, expected: int | None) -> bool:
    """Whether there was one."""
    change = store_pb2.ChangeThreadState(scope=name.scope, key=name.key, delete=True)
    return await _change(call, name.thread_id, change, expected) > 0


async def _change(call: Call, thread_id: ThreadId, change: store_pb2.ChangeThreadState, expected: int | None) -> int:
    if expected is not None:
        if expected >= 1 << 64:
            raise InvalidInput(f"there is no revision {expected}", field="expected_revision")
        change.expected_revision = expected
    reply = await call(thread_id, store_pb2.StoreRequest(thread_id=thread_id, change_thread_state=change))
    if reply.HasField("error"):
        raise from_error(reply.error)
    return reply.thread_state_changed.revision


async def _blob(value: Json) -> store_pb2.Blob:
    # As the SDK writes it, so that equal values are one blob.
    data = json.dumps(value, separators=(",", ":")).encode()
    if len(data) < _OFF_LOOP:
        return blobs.encode(_JSON, data, None, blobs.Limits())
    return await asyncio.to_thread(blobs.encode, _JSON, data, None, blobs.Limits())
