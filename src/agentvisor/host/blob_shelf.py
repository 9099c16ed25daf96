"""The blobs of one thread as a host knows them: checks what comes in, and finds what is asked for.

Nothing is built out of the bytes: a difference is applied to the host's own copy and its hash compared, that is all.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from agentvisor.core.errors import Corrupt, StorageUnavailable, ValueTooLarge
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob, Encoding
from agentvisor.core.store import Store
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.protocol import blobs as codec
from agentvisor.protocol.compression import decompress

LoadBlobs = Callable[[list[BlobKey]], Awaitable[list[Blob]]]
"""Stored blobs of these keys with all that they are based on, bases first; unknown ones are left out."""

TOO_LARGE = "agentvisor/too_large"
"""The type of a value that is left out because it is too large; its bytes are the size, in digits."""
CORRUPT = "agentvisor/corrupt"
"""The type of a value that is left out because it is damaged; its bytes are a text that says what is."""
UNAVAILABLE = "agentvisor/unavailable"
"""The type of a value that is left out because external storage does not answer; its bytes are a text, too."""

_OFF_LOOP = 256 * 1024
"""Bytes from which decoding leaves the event loop."""
_CACHE_BYTES = 64 * 1024 * 1024
_LOOKS = 3
"""At values that are kept decoded, for each one that comes: more than one, so that they become fewer."""


class BlobShelf:
    """Stored forms live in the store that is given; decoded bytes in a bounded cache beside it."""

    def __init__(
        self, store: Store, load: LoadBlobs, *, max_value_bytes: int, external: ExternalStorage | None = None
    ) -> None:
        self._store = store
        self._load = load
        self._external = external
        self._max_value = max_value_bytes
        self._decoded: OrderedDict[BlobKey, bytes] = OrderedDict()
        self._cached = 0

    async def stored(self, keys: Iterable[BlobKey], *, have: frozenset[BlobKey] = frozenset()) -> list[Blob]:
        """The blobs with what they are based on, bases first; what the caller has is left out."""
        wanted = list(keys)
        missing = [key for key in wanted if self._incomplete(key, have)]
        loaded = {blob.key: blob for blob in (await self._load(missing) if missing else ())}
        # What is based on another first: it needs that one. What nothing needs (any more) is handed on, and not kept:
        # the workflow drops it as soon as it has caught up, and nobody may build on it.
        for blob in reversed(list(loaded.values())):
            if self._store.has_blob(blob.key):
                self._store.add_blob(blob)
        if all(key in self._store.blobs for key in loaded):
            return self._store.chain(wanted, have=have)
        return Store(blobs=loaded | self._store.blobs).chain(wanted, have=have)

    def _incomplete(self, key: BlobKey, have: frozenset[BlobKey]) -> bool:
        at: BlobKey | None = key
        while at is not None and at not in have:
            blob = self._store.blobs.get(at)
            if blob is None:
                return True
            at = blob.base
        return False

    async def check(self, blob: Blob) -> None:
        """Decode a blob that a guest sent; `Corrupt` or `ValueTooLarge` where it is not what it says."""
        base = None
        if blob.base is not None:
            base = await self.decoded(blob.base)
            if blob.depth != self._store.blobs[blob.base].depth + 1:
                raise Corrupt(f"blob {blob.key.hex()[:16]} gives a wrong depth")
        elif blob.depth:
            raise Corrupt(f"blob {blob.key.hex()[:16]} gives a depth without a base")
        self._keep(blob.key, await self._decode(blob, base))

    async def key_of(self, blob: Blob) -> BlobKey:
        """The key of a value that came without one."""
        if blob.size > self._max_value:
            raise ValueTooLarge(f"a value of {blob.size} bytes is over the limit of {self._max_value}")
        return await asyncio.to_thread(_key_of, blob)

    async def decoded(self, key: BlobKey) -> bytes:
        """The value's bytes; `Corrupt` where the thread has no such blob."""
        found = self._decoded.get(key)
        if found is not None:
            self._decoded.move_to_end(key)
            return found
        data = None
        for blob in await self.stored([key], have=frozenset(self._decoded)):
            # A chain is a line: each is based on the one before, the first on one that is decoded already.
            base = data if data is not None or blob.base is None else self._decoded.get(blob.base)
            data = await self._decode(blob, base)
            self._keep(blob.key, data)
        if data is None:
            raise Corrupt(f"the thread has no blob {key.hex()[:16]}")
        return data

    async def part(self, key: BlobKey, offset: int, length: int) -> bytes:
        """A part of a blob's data; empty at its end, `Corrupt` where the thread has no such blob."""
        blob = next((one for one in await self.stored([key]) if one.key == key), None)
        if blob is None:
            raise Corrupt(f"the thread has no blob {key.hex()[:16]}")
        return await part_of(blob, offset, length, self._external)

    async def verify(self, blob: Blob, data: bytes) -> None:
        """Compare these bytes of an object with the key of the blob whose it is; `Corrupt` where they do not match."""
        base = await self.decoded(blob.base) if blob.base is not None else None
        self._keep(blob.key, await self._decode_object(blob, data, base))

    async def _decode(self, blob: Blob, base: bytes | None) -> bytes:
        if blob.is_external:
            return await self._decode_object(blob, await part_of(blob, 0, blob.stored_size, self._external), base)
        return await self._decode_here(blob, base)

    async def _decode_object(self, blob: Blob, data: bytes, base: bytes | None) -> bytes:
        try:
            return await self._decode_here(replace(blob, data=data, location="", stored_size=0), base)
        except Corrupt as error:
            url = self._external.url if self._external is not None else ""
            raise Corrupt(
                f"value {blob.key.hex()[:16]} ({blob.location}) is damaged in external storage {url}: {error.message}"
            ) from error

    async def _decode_here(self, blob: Blob, base: bytes | None) -> bytes:
        if blob.size < _OFF_LOOP:
            return codec.decode(blob, base, self._max_value)
        return await asyncio.to_thread(codec.decode, blob, base, self._max_value)

    def _keep(self, key: BlobKey, data: bytes) -> None:
        if key in self._decoded:
            return
        self._decoded[key] = data
        self._cached += len(data)
        for _ in range(_LOOKS):  # what the thread no longer has goes, wherever it stands
            oldest = next(iter(self._decoded))
            if oldest != key and not self._store.has_blob(oldest):
                self._cached -= len(self._decoded.pop(oldest))
            else:
                self._decoded.move_to_end(oldest)
        while self._cached > _CACHE_BYTES and len(self._decoded) > 1:
            _, dropped = self._decoded.popitem(last=False)
            self._cached -= len(dropped)


def _key_of(blob: Blob) -> BlobKey:
    data = decompress(blob.data, size=blob.size) if blob.encoding is Encoding.ZSTD else blob.data
    return BlobKey(codec.blob_key(blob.type, data))


async def part_of(blob: Blob, offset: int, length: int, external: ExternalStorage | None) -> bytes:
    """A part of a blob's data, from wherever it is; empty at its end."""
    if not blob.is_external:
        return blob.data[offset : offset + length]
    if external is None:
        raise StorageUnavailable(
            f"value {blob.key.hex()[:16]} is in external storage, and this host has none: set storage.url as on the "
            "host that stored it"
        )
    length = min(length, blob.stored_size - offset)
    return await external.read(blob, offset, length) if length > 0 else b""
