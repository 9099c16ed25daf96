"""Answers to what the SDK reads: records and values in pages, as any view of a thread has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.struct_pb2 import Struct

from agentvisor.core.delta import histories
from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import CheckpointId, Namespace
from agentvisor.core.records import Blob, Checkpoint, CheckpointTuple
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.protocol.convert import blob_to_message, tuple_to_message, writes_to_message
from agentvisor.protocol.reads import Place, of_page, place
from agentvisor.protocol.thread_state import outline_of
from agentvisor.protocol.v1 import store_pb2, thread_pb2

PAGE_BYTES = 2_000_000
"""Of a reply to the SDK; gRPC's default limit is 4 MB."""

STORED = store_pb2.StoreReply(stored=store_pb2.Stored())
STRATEGIES = {"keep_latest": True, "delete": False}


def keeps_latest(asked: store_pb2.PruneThread) -> bool:
    """Whether a strategy keeps the newest checkpoints, or nothing; `InvalidInput` for one that does not exist."""
    if asked.strategy not in STRATEGIES:
        raise InvalidInput(
            f"there is no prune strategy {asked.strategy[:40]!r}: use 'keep_latest' or 'delete'", field="strategy"
        )
    return STRATEGIES[asked.strategy]


def found(one: CheckpointTuple | None) -> store_pb2.StoreReply:
    """The reply to a get; there may be no such checkpoint."""
    reply = store_pb2.StoreReply(found=store_pb2.Found())
    if one is not None:
        reply.found.tuple.CopyFrom(tuple_to_message(one))
    return reply


def part_reply(data: bytes) -> store_pb2.StoreReply:
    """The reply to a request for a part."""
    return store_pb2.StoreReply(part=store_pb2.Part(data=data))


def blobs_page(blobs: Iterable[Blob]) -> store_pb2.StoreReply:
    """As many as fit; the SDK asks again for the rest."""
    reply, size = store_pb2.StoreReply(blobs=store_pb2.Blobs()), 0
    for blob in blobs:
        if size and size + blob.stored_bytes > PAGE_BYTES:
            break
        reply.blobs.blobs.append(blob_to_message(blob))
        size += blob.stored_bytes
    return reply


def delta_history(store: Store, asked: store_pb2.DeltaHistory) -> store_pb2.StoreReply:
    """What the delta channels of a checkpoint are made of: writes of its ancestors, from the nearest value on."""
    reply = store_pb2.StoreReply(delta_history=store_pb2.DeltaHistories())
    wanted = CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None
    for channel, history in histories(store, Namespace(asked.namespace), wanted, tuple(asked.channels)).items():
        message = reply.delta_history.channels.add(channel=channel, seed=history.seed or b"")
        message.writes.extend(writes_to_message(one) for one in history.writes)
    return reply


STATE_ITEMS = 256
"""Items of an entry that one reply names."""


def state_found(store: Store, asked: store_pb2.GetThreadState) -> store_pb2.StoreReply:
    """The reply to a get of thread state: the entry with a page of its items; there may be no such entry."""
    reply = store_pb2.StoreReply(thread_state_found=store_pb2.ThreadStateFound())
    entry = store.state.get(asked.scope, asked.key)
    if entry is not None:
        reply.thread_state_found.entry.CopyFrom(outline_of(entry))
        reply.thread_state_found.entry.items.extend(entry.items[asked.start : asked.start + STATE_ITEMS])
    return reply


def state_listed(store: Store, asked: store_pb2.ListThreadState) -> store_pb2.StoreReply:
    """The reply to a list of thread state, without items."""
    reply, size = store_pb2.StoreReply(thread_state_listed=store_pb2.ThreadStateListed()), 0
    for entry in store.state.listed(asked.scope, asked.prefix, asked.after):
        listed = reply.thread_state_listed
        if size > PAGE_BYTES or 0 < asked.limit <= len(listed.entries):
            listed.more = True
            break
        listed.entries.append(outline_of(entry))
        size += entry.stored_bytes
    return reply


def list_page(
    thread: Thread, asked: store_pb2.ListCheckpoints, *, last: Place | None = None, room: int = PAGE_BYTES
) -> store_pb2.Listed:
    """A page of one thread's checkpoints, newest first, of `room` bytes about; one at least.

    `last`: how far down the list the thread was read, where that is not to its end.
    """
    listed, size = store_pb2.Listed(), 0
    left = asked.limit if asked.HasField("limit") else None
    for checkpoint in _selected(thread, asked):
        if left == 0 or (last is not None and place(checkpoint) < last):
            break
        if size > room:
            listed.more = True
            break
        one = CheckpointTuple(checkpoint, thread.store.pending(checkpoint.key))
        size += checkpoint.stored_bytes + sum(writes.stored_bytes for writes in one.pending)
        left = None if left is None else left - 1
        listed.checkpoints.add(thread_id=thread.thread_id, tuple=tuple_to_message(one))
    return listed


_LATEST = store_pb2.ListCheckpoints(saves=True, limit=1)


def _selected(thread: Thread, asked: store_pb2.ListCheckpoints) -> Iterator[Checkpoint]:
    """Those that are asked for, newest first, from the page's beginning on."""
    if asked == _LATEST:  # what every save asks for first
        latest = thread.store.latest_save()
        return iter([latest] if latest is not None else [])
    found = thread.store.newest_first(
        Namespace(asked.namespace) if asked.HasField("namespace") else None,
        checkpoint_id=CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None,
        before=CheckpointId(asked.before) if asked.before else None,
        saves=asked.saves,
    )
    page = thread_pb2.ListPage(after_id=asked.after_id, after_namespace=asked.after_namespace)
    return (one for one in of_page(found, page) if _matches(one.metadata, asked.filter))


def _matches(metadata: bytes, wanted: Struct) -> bool:
    """Every wanted key is there with an equal value."""
    if not wanted.fields:
        return True
    fields = Struct.FromString(metadata).fields
    return all(key in fields and fields[key] == value for key, value in wanted.fields.items())
