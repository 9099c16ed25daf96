"""Channel values as they travel and are stored: whole, or as a difference from a value that is stored already."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agentvisor.core.errors import Corrupt, ValueTooLarge
from agentvisor.protocol import splice
from agentvisor.protocol.compression import compress, compress_patch, decompress
from agentvisor.protocol.v1 import store_pb2

RAW_BELOW = 256
"""Bytes under which a value is stored as it is: a frame and a base cost more than they save."""

_LENGTH = struct.Struct("<I")
_FRESH_LEVEL = 3
_Base = TypeVar("_Base")


@dataclass(frozen=True, slots=True)
class Limits:
    """How large values and how long their chains may become."""

    patch_chain: int = 64
    """Blobs below one that decoding it may need."""

    max_value_bytes: int = 64 * 1024 * 1024
    """Of one value, decoded."""

    max_stored_bytes: int = 1_500_000
    """Of one value as it is sent and stored."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that is stored for sure, so that a difference from it can be decoded."""

    key: bytes
    type: str
    data: bytes
    depth: int
    chain_bytes: int
    """Stored bytes of this blob and of all below it."""

    whole_bytes: int
    """Stored bytes of the blob at the bottom of the chain, which has no base..."""

    whole_size: int
    """...and its decoded size: together they tell what a fresh start would cost."""

    def fresh_cost(self, size: int) -> int:
        """About the stored bytes of a value of `size` bytes that has no base."""
        return max(RAW_BELOW, self.whole_bytes * size // max(self.whole_size, 1))


class BlobFields(Protocol):
    """What decoding reads of a blob, be it a message or a record of core."""

    @property
    def key(self) -> bytes: ...
    @property
    def type(self) -> str: ...
    @property
    def encoding(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    @property
    def size(self) -> int: ...


def blob_key(type: str, data: bytes) -> bytes:
    """The address of a value: SHA-256 over the type's length, the type, and the bytes."""
    name = type.encode()
    digest = hashlib.sha256(_LENGTH.pack(len(name)) + name)
    digest.update(data)
    return digest.digest()


def encode(type: str, data: bytes, predecessor: Stored | None, limits: Limits) -> store_pb2.Blob:
    """Return the blob of a value, as a difference from `predecessor` where that is smaller.

    A growing conversation costs per step about what was added to it. Chains are bounded twice: by `limits.patch_chain`,
    and by twice the bytes of a fresh start, so that what reading needs is never much more than the value itself.
    """
    return encode_as(blob_key(type, data), type, data, predecessor, limits)


def encode_as(key: bytes, type: str, data: bytes, predecessor: Stored | None, limits: Limits) -> store_pb2.Blob:
    """`encode` for a caller that knows the key."""
    encoding, encoded, base = _smallest(data, predecessor, limits)
    return store_pb2.Blob(
        key=key,
        type=type,
        encoding=encoding,
        data=encoded,
        base=b"" if base is None else base.key,
        size=len(data),
        depth=0 if base is None else base.depth + 1,
    )


def _smallest(
    data: bytes, predecessor: Stored | None, limits: Limits
) -> tuple[store_pb2.Encoding.ValueType, bytes, Stored | None]:
    if len(data) < RAW_BELOW:
        return store_pb2.ENCODING_RAW, data, None
    if predecessor is None or len(predecessor.data) < RAW_BELOW or predecessor.depth >= limits.patch_chain:
        return _fresh(data)
    difference = _difference(data, predecessor)
    encoded = difference[1]
    fresh_cost = predecessor.fresh_cost(len(data))
    if predecessor.chain_bytes + len(encoded) > 2 * fresh_cost:
        return _fresh(data)
    if len(encoded) > fresh_cost // 2:
        # Hardly anything in common: a chain is not worth it where a fresh start costs about the same.
        fresh = _fresh(data)
        if len(fresh[1]) <= len(encoded) * 5 // 4:
            return fresh
    return difference


def _difference(data: bytes, predecessor: Stored) -> tuple[store_pb2.Encoding.ValueType, bytes, Stored]:
    runs = splice.find_runs(predecessor.data, data)
    if splice.literal_bytes(runs, len(data)) <= len(data) // 4:
        return store_pb2.ENCODING_SPLICE, splice.pack(runs, predecessor.data, data), predecessor
    return store_pb2.ENCODING_PATCH, compress_patch(data, predecessor.data), predecessor


def _fresh(data: bytes) -> tuple[store_pb2.Encoding.ValueType, bytes, None]:
    frame = compress(data, level=_FRESH_LEVEL)
    if len(frame) < len(data):
        return store_pb2.ENCODING_ZSTD, frame, None
    return store_pb2.ENCODING_RAW, data, None


def decode(blob: BlobFields, base: bytes | None, max_size: int) -> bytes:
    """Return the value's bytes; `base` is the decoded blob that it starts from, if it has one.

    Raises `ValueTooLarge` before anything is decoded where the declared size is over `max_size`, and `Corrupt` where
    the bytes are not the value of the blob's key. Never allocates much more than the declared size.
    """
    if blob.size > max_size:
        raise ValueTooLarge(f"a value of {blob.size} bytes is over the limit of {max_size}", limit=str(max_size))
    match blob.encoding:
        case store_pb2.ENCODING_RAW:
            data = blob.data
        case store_pb2.ENCODING_ZSTD:
            data = decompress(blob.data, size=blob.size)
        case store_pb2.ENCODING_PATCH:
            data = decompress(blob.data, size=blob.size, prefix=_present(base))
        case store_pb2.ENCODING_SPLICE:
            data = splice.unpack(blob.data, _present(base), blob.size)
        case other:
            raise Corrupt(f"a blob of unknown encoding {other}: it may come from a newer version of AgentVisor")
    if len(data) != blob.size or blob_key(blob.type, data) != blob.key:
        raise Corrupt(f"the bytes of blob {blob.key.hex()[:16]} do not match its key")
    return data


def stored(blob: store_pb2.Blob, data: bytes, base: Stored | None) -> Stored:
    """What later differences need to know of a blob that is stored; `base` is the one that it starts from."""
    if not blob.base:
        return Stored(blob.key, blob.type, data, blob.depth, len(blob.data), len(blob.data), len(data))
    below = _present(base)
    chain_bytes = below.chain_bytes + len(blob.data)
    return Stored(blob.key, blob.type, data, blob.depth, chain_bytes, below.whole_bytes, below.whole_size)


def _present(base: _Base | None) -> _Base:
    if base is None:
        raise Corrupt("the blob is a difference from a base that is missing")
    return base
