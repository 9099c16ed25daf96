"""Records and pending writes as they travel: a serialiser's typed bytes, compressed where that is smaller."""

from __future__ import annotations

from agentvisor.core.errors import Corrupt
from agentvisor.protocol.compression import compress, decompress
from agentvisor.protocol.v1 import store_pb2

Typed = tuple[str, bytes]
"""What LangGraph's serialisers make of a value: the name of the format, and the bytes."""

MAX_RECORD = 16 * 1024 * 1024
"""Bytes of a checkpoint's record, decoded: it holds the versions of channels, never their values."""

MAX_WRITE = 256 * 1024 * 1024
"""Bytes of one pending write, decoded, that are read; writing has the limits of values."""

_COMPRESSED = "+zstd1"
"""Ends the type of a record that is compressed with `_DICTIONARY`, after four bytes of its size. For ever: another
dictionary gets another ending."""

_DICTIONARY = (
    b"\xa1v\x04\xa2ts\xd9 2026-11-30T06:00:00.000000+00:00\xa2id\xd9$1f1ec837-0000-6000-8000-000000000000"
    b"\xb0channel_versions\x85\xa9__start__\xb300000002.\xa8messages\xb300000011.\xabbranch:to:agent\xa7__pregel_tasks"
    b"branch:to:tools\xb3000000\xadversions_seen\x84\xa9__input__\x80\xa9__start__\x81\xa9__start__\xb300000001."
    b"\xa5agent\x81\xb0branch:to:agent\xb300000010.\xa5tools\x81\xb0branch:to:tools\xb300000010.\xad__interrupt__"
    b"\xb0updated_channels\x92\xa8messages"
)

_COMPRESS_FROM = 128
_SIZE_BYTES = 4


def pack_record(record: Typed) -> Typed:
    """The type and bytes that a checkpoint message carries; `unpack_record` reads them back."""
    kind, data = record
    # A type that ends like ours must not be taken for ours: it is compressed, whatever that saves.
    if len(data) >= _COMPRESS_FROM or kind.endswith(_COMPRESSED):
        frame = len(data).to_bytes(_SIZE_BYTES, "little") + compress(data, level=3, prefix=_DICTIONARY)
        if len(frame) < len(data) or kind.endswith(_COMPRESSED):
            return kind + _COMPRESSED, frame
    return record


def unpack_record(kind: str, data: bytes) -> Typed:
    """The serialiser's type and bytes again; `Corrupt` where they are neither that nor compressed."""
    if not kind.endswith(_COMPRESSED):
        return kind, data
    size = int.from_bytes(data[:_SIZE_BYTES], "little")
    if size > MAX_RECORD:
        raise Corrupt(f"a checkpoint's record of {size} bytes is over the limit of {MAX_RECORD}")
    return kind.removesuffix(_COMPRESSED), decompress(data[_SIZE_BYTES:], size=size, prefix=_DICTIONARY)


def pack_write(idx: int, channel: str, value: Typed, *, is_state: bool = False) -> store_pb2.Write:
    """One pending write; `is_state`: a delta channel's, which is never dropped."""
    kind, data = value
    if len(data) >= _COMPRESS_FROM:
        frame = compress(data, level=3)
        if len(frame) < len(data):
            return store_pb2.Write(idx=idx, channel=channel, type=kind, data=frame, size=len(data), is_state=is_state)
    return store_pb2.Write(idx=idx, channel=channel, type=kind, data=data, is_state=is_state)


def unpack_write(write: store_pb2.Write) -> Typed:
    """The value of a pending write."""
    if not write.size:
        return write.type, write.data
    if write.size > MAX_WRITE:
        raise Corrupt(f"a pending write of {write.size} bytes is over the limit of {MAX_WRITE}")
    return write.type, decompress(write.data, size=write.size)
