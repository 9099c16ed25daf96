"""Storing a checkpoint: what the thread does not have yet is sent, everything else is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.struct_pb2 import Struct

from agentvisor.client.encoding import Typed, pack_record
from agentvisor.client.known import ChannelName, CheckpointName, Held, Known, Version
from agentvisor.client.line import Line
from agentvisor.client.operations import Operation
from agentvisor.client.parts import Luggage, send
from agentvisor.client.requests import WAYS_OUT, get_checkpoint, place, value_of
from agentvisor.core.errors import Corrupt, StateTooLarge, ValueTooLarge
from agentvisor.protocol.blobs import Limits, blob_key, encode_as, stored
from agentvisor.protocol.frames import MAX_FRAME
from agentvisor.protocol.v1 import store_pb2

_FRAME_MARGIN = 64 * 1024


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint to store; values are serialised already, or by `unchanged` before anything is sent."""

    name: CheckpointName
    parent_id: str
    ts: str
    record: Typed
    metadata: Struct
    versions: Mapping[str, Version]
    """Of every channel that the checkpoint has."""
    changed: Mapping[str, Typed | None]
    """The channels whose versions are new; None where the channel is empty."""
    unchanged: Callable[[str], Typed | None]
    """The value of any other channel, for where the parent is not known; None where it is not at hand."""


class Put:
    """One put under way: what is sent, and what is noted once it is stored."""

    def __init__(self, new: NewCheckpoint, known: Known, limits: Limits) -> None:
        self._new = new
        self._known = known
        self._limits = limits
        self._thread = new.name.thread
        self._keys: dict[str, bytes] = {}
        self._blobs: dict[bytes, store_pb2.Blob] = {}
        self._lines: dict[ChannelName, Line] = {}

    def run(self) -> Operation[None]:
        """Store it; one request, as a rule, after the parts of values that are too large for it."""
        self._resolve_channels()
        left = [channel for channel in self._new.versions if channel not in self._keys]
        if left:
            yield from self._take_from_parent(left)
        try:
            yield from self._send()
        except Corrupt:
            # The thread does not have what it had: it was pruned, or deleted and begun anew, by somebody else. Or the
            # host that was sent the parts is gone.
            self._known.forget(self._thread)
            self._send_everything()
            yield from self._send()
        self._note()

    def _send(self) -> Operation[None]:
        luggage = Luggage()
        request = self._request(luggage)
        yield from send(luggage.uploads, self._thread)
        yield request

    def _resolve_channels(self) -> None:
        new = self._new
        parent = self._known.channels(new.name._replace(checkpoint_id=new.parent_id)) or {}
        for channel, version in new.versions.items():
            held = parent.get(channel)
            if channel in new.changed:
                self._resolve(channel, new.changed[channel])
            elif held is not None and held.version == version:
                self._keys[channel] = held.key
            elif (value := new.unchanged(channel)) is not None:
                self._resolve(channel, value)
            elif (key := self._known.holding(self._channel(channel), version)) is not None:
                self._keys[channel] = key

    def _resolve(self, channel: str, value: Typed | None) -> None:
        if value is None:
            self._keys[channel] = b""
            return
        key = blob_key(*value)
        self._keys[channel] = key
        if key not in self._blobs and not self._known.is_stored(self._thread, key):
            self._add_blob(channel, key, value)

    def _add_blob(self, channel: str, key: bytes, value: Typed) -> None:
        name, (kind, data) = self._channel(channel), value
        self._check_size(channel, len(data), self._limits.max_value_bytes, "storage.max_value")
        line = self._known.line(name)
        base = None if line is None else line.base()
        blob = encode_as(key, kind, data, base, self._limits)
        self._check_size(channel, len(blob.data), self._limits.max_stored_bytes, "storage.max_inline_value")
        self._blobs[key] = blob
        here = stored(blob, data, base)
        if line is not None and blob.base:
            self._lines[name] = line.extended(here, len(blob.data))
        else:
            self._lines[name] = Line.of([here], [])

    def _check_size(self, channel: str, size: int, limit: int, setting: str) -> None:
        if size > limit:
            raise ValueTooLarge(
                f"{value_of(self._new.name.namespace, channel)} of {place(self._new.name)} has {size} bytes, the limit "
                f"is {limit} ({setting}): {WAYS_OUT}",
                channel=channel,
                size=str(size),
                limit=str(limit),
            )

    def _take_from_parent(self, channels: Iterable[str]) -> Operation[None]:
        """What the host says that the parent holds; a channel that is not there either is empty."""
        parent: Mapping[str, bytes] = {}
        if self._new.parent_id:
            reply = yield get_checkpoint(self._new.name._replace(checkpoint_id=self._new.parent_id))
            if reply.found.HasField("tuple"):
                parent = {one.channel: one.key for one in reply.found.tuple.checkpoint.channels}
        for channel in channels:
            self._keys[channel] = parent.get(channel, b"")

    def _send_everything(self) -> None:
        """Encode every value anew that is at hand and still the one that was meant."""
        new = self._new
        self._blobs.clear()
        self._lines.clear()
        for channel in new.versions:
            value = new.changed[channel] if channel in new.changed else new.unchanged(channel)
            if value is not None and (key := blob_key(*value)) == self._keys[channel] and key not in self._blobs:
                self._add_blob(channel, key, value)

    def _request(self, luggage: Luggage) -> store_pb2.StoreRequest:
        new = self._new
        kind, record = pack_record(new.record)
        request = store_pb2.StoreRequest(
            thread_id=self._thread,
            put=store_pb2.PutCheckpoint(
                checkpoint=store_pb2.Checkpoint(
                    namespace=new.name.namespace,
                    checkpoint_id=new.name.checkpoint_id,
                    parent_id=new.parent_id,
                    type=kind,
                    record=record,
                    metadata=new.metadata,
                    channels=[store_pb2.ChannelValue(channel=name, key=self._keys[name]) for name in new.versions],
                    ts=new.ts,
                ),
                blobs=[announced(blob, luggage) for blob in self._blobs.values()],
            ),
        )
        size, limit = request.ByteSize(), MAX_FRAME - _FRAME_MARGIN
        if size > limit:
            raise StateTooLarge(
                f"checkpoint {new.name.checkpoint_id} of {place(new.name)} has {size} bytes without its large values, "
                f"more than the {limit} that one message may have: use fewer channels, or less metadata",
                size=str(size),
                limit=str(limit),
            )
        return request

    def _note(self) -> None:
        for name, line in self._lines.items():
            self._known.set_line(name, line)
        held = {channel: Held(version, self._keys[channel]) for channel, version in self._new.versions.items()}
        self._known.set_channels(self._new.name, held)

    def _channel(self, channel: str) -> ChannelName:
        return ChannelName(self._thread, self._new.name.namespace, channel)


def announced(blob: store_pb2.Blob, luggage: Luggage) -> store_pb2.Blob:
    """The blob as a request holds it: without data that goes in parts."""
    upload = luggage.carries(blob.data)
    if upload is None:
        return blob
    return store_pb2.Blob(
        key=blob.key,
        type=blob.type,
        encoding=blob.encoding,
        base=blob.base,
        size=blob.size,
        depth=blob.depth,
        stored_size=len(blob.data),
        upload=upload.name,
    )
