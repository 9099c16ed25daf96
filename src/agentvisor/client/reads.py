"""Reading checkpoints: records first, then the values that are not here yet, in as many pages as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.struct_pb2 import Struct

from agentvisor.client.encoding import Typed, unpack_record, unpack_write
from agentvisor.client.known import ChannelName, CheckpointName, Held, Known, Version
from agentvisor.client.line import Line
from agentvisor.client.operations import Operation
from agentvisor.client.parts import fetch
from agentvisor.client.requests import get_checkpoint, value_of
from agentvisor.core.errors import Corrupt
from agentvisor.protocol.blobs import Stored, decode, stored
from agentvisor.protocol.v1 import store_pb2

MAX_VALUE = 1 << 30
"""Bytes of one value that are read, decoded; writing has smaller limits, and those may have been lowered since."""

_PAGE = 16
"""Checkpoints that are read at a time: all their values are in memory at once."""

VersionsOf = Callable[[Typed], Mapping[str, Version]]
"""The channel versions in a checkpoint's record, which only its serialiser can read."""


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint as it was read; everything in it is still serialised."""

    name: CheckpointName
    parent_id: str
    record: Typed
    metadata: Struct
    values: Mapping[str, Typed]
    """By channel; empty channels are left out."""
    pending: list[tuple[str, str, Typed]]
    """(task id, channel, value), in the order of (task path, task id, index)."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which checkpoints to list, newest first."""

    thread: str
    """Empty: the run's own."""
    all_threads: bool = False
    namespace: str | None = None
    """None: every namespace."""
    checkpoint_id: str = ""
    before: str = ""
    filter: Struct | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a list goes on."""

    asked: store_pb2.ListCheckpoints
    left: int | None
    """How many checkpoints the caller still wants; None: all."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some checkpoints of a list, and where it goes on; None at its end."""

    checkpoints: list[FoundCheckpoint]
    next: Cursor | None


def get(name: CheckpointName, known: Known, versions_of: VersionsOf) -> Operation[FoundCheckpoint | None]:
    """Read one checkpoint, the latest where `name` has no id. What was read is what later puts start from."""
    reply = yield get_checkpoint(name)
    if not reply.found.HasField("tuple"):
        return None
    message = reply.found.tuple
    here = known.namespace_values(name.thread, name.namespace)
    names = _keys([message])
    loaded = yield from load_values(name.thread, list(names), here, names)
    found = _found(name.thread, message, loaded.values)
    versions = versions_of(found.record)
    channels = {one.channel: one.key for one in message.checkpoint.channels}
    known.set_channels(found.name, {one: Held(versions[one], channels[one]) for one in channels if one in versions})
    for channel, key in channels.items():
        line_name = ChannelName(name.thread, name.namespace, channel)
        line = known.line(line_name)
        if key and (line is None or line.last.key != key):
            known.set_line(line_name, loaded.line_to(key))
    return found


def start_of_list(query: Query) -> Cursor | None:
    """Where a list begins; None where nothing is wanted."""
    if query.limit is not None and query.limit <= 0:
        return None
    asked = store_pb2.ListCheckpoints(
        checkpoint_id=query.checkpoint_id, before=query.before, filter=query.filter, all_threads=query.all_threads
    )
    if query.namespace is not None:
        asked.namespace = query.namespace
    return Cursor(asked, query.limit)


def list_page(thread: str, cursor: Cursor) -> Operation[Page]:
    """Read one page of a list, values included."""
    asked = cursor.asked
    asked.limit = _PAGE if cursor.left is None else min(_PAGE, cursor.left)
    reply = yield store_pb2.StoreRequest(thread_id=thread, list=asked)
    listed = reply.listed.checkpoints
    values: dict[str, Mapping[bytes, Stored]] = {}
    for owner in dict.fromkeys(one.thread_id for one in listed):
        keys = _keys(one.tuple for one in listed if one.thread_id == owner)
        loaded = yield from load_values(owner if asked.all_threads else thread, list(keys), {}, keys)
        values[owner] = loaded.values
    checkpoints = [_found(one.thread_id, one.tuple, values[one.thread_id]) for one in listed]
    left = None if cursor.left is None else cursor.left - len(listed)
    is_last = not listed or left == 0 or (len(listed) < asked.limit and not reply.listed.more)
    return Page(checkpoints, None if is_last else Cursor(_after(asked, listed[-1]), left))


def _after(asked: store_pb2.ListCheckpoints, last: store_pb2.ListedCheckpoint) -> store_pb2.ListCheckpoints:
    after = store_pb2.ListCheckpoints()
    after.CopyFrom(asked)
    after.after_thread = last.thread_id
    after.after_namespace = last.tuple.checkpoint.namespace
    after.after_id = last.tuple.checkpoint.checkpoint_id
    return after


def _keys(tuples: Iterable[store_pb2.CheckpointTuple]) -> dict[bytes, str]:
    """Of every value that is a blob, what channels hold, and large writes: the key, and what it is."""
    keys: dict[bytes, str] = {}
    for found in tuples:
        for one in found.checkpoint.channels:
            if one.key:
                keys.setdefault(one.key, value_of(found.checkpoint.namespace, one.channel))
        for task in found.pending:
            for write in task.writes:
                if write.key:
                    keys.setdefault(write.key, f"write of task {task.task_id} to channel {write.channel!r}")
    return keys


def _damaged(
    error: Corrupt, thread: str, blob: store_pb2.Blob, among: Iterable[store_pb2.Blob], names: Mapping[bytes, str]
) -> Corrupt:
    """The error with what cannot be read; a value that only others are made of is called by their name."""
    made_of, key = {one.base: one.key for one in among if one.base}, blob.key
    while key not in names and key in made_of:
        key = made_of[key]
    what = f"{names.get(key, 'a value')} of {f'thread {thread}' if thread else 'this thread'}"
    where = f" (object {blob.location})" if blob.location and blob.location not in error.message else ""
    return Corrupt(f"{what}{where} cannot be read: {error.message}", **error.details)


@dataclass(frozen=True, slots=True)
class LoadedValues:
    """Values by key; and of those that were sent, what each is a difference from and of how many bytes."""

    values: dict[bytes, Stored]
    steps: dict[bytes, tuple[bytes, int]]

    def line_to(self, key: bytes) -> Line:
        """The way to a value, as far down as it was sent."""
        way, steps = [self.values[key]], list[int]()
        while key in self.steps:
            key, size = self.steps[key]
            way.append(self.values[key])
            steps.append(size)
        return Line.of(way[::-1], steps[::-1])


def load_values(
    thread: str, wanted: list[bytes], here: Mapping[bytes, Stored], names: Mapping[bytes, str]
) -> Operation[LoadedValues]:
    """The values of these keys; `here` are those whose bytes are here already. `names` are for errors.

    `Corrupt` where bytes are damaged or gone; it says of which channel, and in which object.
    """
    values = dict(here)
    steps: dict[bytes, tuple[bytes, int]] = {}
    while missing := [key for key in wanted if key not in values]:
        reply = yield store_pb2.StoreRequest(
            thread_id=thread, get_blobs=store_pb2.GetBlobs(keys=missing, have=list(values))
        )
        before = len(values)
        for blob in reply.blobs.blobs:
            base = values.get(blob.base) if blob.base else None
            try:
                yield from fetch(thread, blob)
                data = decode(blob, None if base is None else base.data, MAX_VALUE)
            except Corrupt as error:
                raise _damaged(error, thread, blob, reply.blobs.blobs, names) from error
            values[blob.key] = stored(blob, data, base)
            if blob.base:
                steps[blob.key] = (blob.base, len(blob.data))
        if len(values) == before:
            raise Corrupt(f"the thread has no value {missing[0].hex()[:16]}, which a checkpoint of it names")
    return LoadedValues(values, steps)


def _found(thread: str, message: store_pb2.CheckpointTuple, values: Mapping[bytes, Stored]) -> FoundCheckpoint:
    checkpoint = message.checkpoint
    return FoundCheckpoint(
        name=CheckpointName(thread, checkpoint.namespace, checkpoint.checkpoint_id),
        parent_id=checkpoint.parent_id,
        record=unpack_record(checkpoint.type, checkpoint.record),
        metadata=checkpoint.metadata,
        values={one.channel: (values[one.key].type, values[one.key].data) for one in checkpoint.channels if one.key},
        pending=[
            (task.task_id, write.channel, written(write, values)) for task in message.pending for write in task.writes
        ],
    )


def written(write: store_pb2.Write, values: Mapping[bytes, Stored]) -> Typed:
    """The value of a pending write, which may be a blob."""
    if write.key:
        return values[write.key].type, values[write.key].data
    return unpack_write(write)
