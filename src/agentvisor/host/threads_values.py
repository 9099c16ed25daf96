"""The values of a thread: decoded, as they are stored, or a part of one; of the workflow's state and the live log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from agentvisor.core.errors import Corrupt, StorageUnavailable
from agentvisor.core.ids import BlobKey, ThreadId
from agentvisor.core.records import Blob
from agentvisor.core.store import Store
from agentvisor.host.blob_shelf import CORRUPT, TOO_LARGE, UNAVAILABLE, BlobShelf, part_of
from agentvisor.host.external.storage import ExternalStorage, Patience
from agentvisor.host.threads_read import NO_RUN, ThreadReader
from agentvisor.protocol.v1 import thread_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.threads")

_ANY_SIZE = 1 << 30


@dataclass(frozen=True, slots=True)
class ThreadValues:
    """Values as one caller may read them."""

    reader: ThreadReader
    external: ExternalStorage | None
    max_value: int
    """Bytes of what is decoded at a time."""

    def shelf_of(self, store: Store) -> BlobShelf:
        """The values of a store that holds all of them, whatever their size: limits may have been lowered since."""
        return BlobShelf(store, _nothing_more, max_value_bytes=_ANY_SIZE, external=self.external)

    async def decoded(
        self, thread_id: ThreadId, keys: Iterable[BlobKey], *, patience: Patience | None = None
    ) -> dict[BlobKey, tuple[str, bytes]]:
        """Decoded values: key to (serde type, bytes). Unknown keys are left out; what is damaged is `CORRUPT`.

        No more than about `storage.max_value` bytes in all: what is over that is of the type `TOO_LARGE`. With
        `patience`, what external storage does not give in that time is `UNAVAILABLE`, and no error.
        """
        wanted = list(dict.fromkeys(keys))
        store = Store()
        for blob in await self.stored(thread_id, wanted) if wanted else ():
            store.blobs[blob.key] = blob
        external = self.external if self.external is None or patience is None else self.external.within(patience)
        shelf = BlobShelf(store, _nothing_more, max_value_bytes=self.max_value, external=external)
        found: dict[BlobKey, tuple[str, bytes]] = {}
        left = self.max_value
        for key in wanted:
            blob = store.blobs.get(key)
            if blob is None:
                continue
            if blob.size > left and found:
                found[key] = (TOO_LARGE, str(blob.size).encode())
                continue
            left -= blob.size
            try:
                found[key] = (blob.type, await shelf.decoded(key))
            except Corrupt as error:
                log.error("value_corrupt", thread=thread_id, key=key.hex()[:16], error=error.message)  # noqa: TRY400
                found[key] = (CORRUPT, error.message.encode())
            except StorageUnavailable as error:
                if patience is None:
                    raise
                found[key] = (UNAVAILABLE, error.message.encode())
        return found

    async def stored(
        self,
        thread_id: ThreadId,
        keys: Iterable[BlobKey],
        *,
        have: frozenset[BlobKey] = frozenset(),
        enough: int | None = None,
    ) -> list[Blob]:
        """Blobs as they are stored, with what they are based on, bases first; `enough`: of about so many bytes."""
        wanted = [key for key in keys if key not in have]
        store = Store()
        for blob in await self.reader.blobs(thread_id, wanted, have=have, enough=enough):
            store.blobs[blob.key] = blob
        if enough is not None and sum(blob.stored_bytes for blob in store.blobs.values()) > enough:
            return store.chain(wanted, have=have)
        if any(key not in store.blobs for key in wanted):
            # Not in the workflow's state yet: the live attempt's log has them, their bases may be in either.
            asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=NO_RUN)
            logged = (await self.reader.read(thread_id, asked)).store.blobs
            bases = [blob.base for blob in logged.values() if blob.base is not None and blob.base not in logged]
            for blob in [*await self.reader.blobs(thread_id, [*wanted, *bases], have=have), *logged.values()]:
                store.blobs.setdefault(blob.key, blob)
        return store.chain(wanted, have=have)

    async def part(self, thread_id: ThreadId, key: BlobKey, offset: int, length: int) -> bytes:
        """A part of a stored blob's data; empty at its end, `Corrupt` where the thread has no such blob."""
        blob = next((one for one in await self.stored(thread_id, [key]) if one.key == key), None)
        if blob is None:
            raise Corrupt(f"thread {thread_id} has no value {key.hex()[:16]}")
        return await part_of(blob, offset, length, self.external)


async def _nothing_more(_keys: list[BlobKey]) -> list[Blob]:
    return []
