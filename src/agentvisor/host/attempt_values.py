"""Values of one live attempt: taken in and checked to be here, and moved to external storage where room is short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from agentvisor.core.errors import Corrupt, StorageUnavailable
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob, Checkpoint, Operation, PutBlobs
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_log import AttemptLog, batches
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.host.door import Door
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.external.shedding import move_before_compaction
from agentvisor.host.external.storage import Verify
from agentvisor.host.incoming import Incoming, What
from agentvisor.host.journal import Urgency
from agentvisor.host.metrics import MOVED_VALUES
from agentvisor.protocol.v1 import store_pb2


class AttemptValues:
    """The part of an attempt's store that knows where values are."""

    def __init__(
        self,
        thread: Thread,
        shelf: BlobShelf,
        incoming: Incoming,
        door: Door,
        log: AttemptLog,
        *,
        objects: AttemptObjects | None,
        putting: asyncio.Lock,
    ) -> None:
        """`putting`: held by whoever takes values in, and here while one is moved out."""
        self._thread = thread
        self._shelf = shelf
        self._incoming = incoming
        self._door = door
        self._log = log
        self._objects = objects
        self._putting = putting

    @asynccontextmanager
    async def taken(
        self,
        blobs: Sequence[store_pb2.Blob],
        names: Mapping[BlobKey, What],
        bytes_with_them: int,
        coming: Checkpoint | None = None,
    ) -> AsyncGenerator[dict[BlobKey, Blob]]:
        """Values here and checked, to be logged while this lasts, with `coming` or with something else that is new."""
        async with self._incoming.room_for(blobs), self._log.fresh() as fresh:
            await self._incoming.take(blobs, names, fresh)
            for key, what in names.items():
                if not self._incoming.has(key, fresh):
                    raise Corrupt(
                        f"{what} names a value that thread {self._thread.thread_id} does not have", channel=what.name
                    )
            await self._move(fresh, names, bytes_with_them, coming)
            yield fresh

    async def _move(
        self, fresh: dict[BlobKey, Blob], names: Mapping[BlobKey, What], bytes_with_it: int, coming: Checkpoint | None
    ) -> None:
        """Put values into external storage that are too large for the thread, or for which it has no room."""
        if self._objects is None:
            return
        await self._incoming.move_large(fresh, names)
        more = size_of(fresh) + bytes_with_it
        moved = await self._incoming.move_some(fresh, names, self._door.missing_room(more, coming))
        if moved:
            MOVED_VALUES.inc(len(moved))
            self._log.append([*batches(moved)], Urgency.LAZY)

    async def owned(self, operation: Operation, verify: Verify) -> Operation:
        """An operation of another thread's with objects of this thread's own: neither's deletion harms the other."""
        if not isinstance(operation, PutBlobs) or not any(blob.is_external for blob in operation.blobs):
            return operation
        if self._objects is None:
            raise StorageUnavailable("the thread to copy has values in external storage: set storage.url on this host")
        return PutBlobs(
            tuple([await self._objects.own(blob, verify) if blob.is_external else blob for blob in operation.blobs])
        )

    async def prepare_compaction(self) -> None:
        """Make the thread's state so small, if there is external storage, that a compaction leaves nothing out."""
        if self._objects is not None:
            limit = self._thread.settings.state_bytes
            await move_before_compaction(self._objects.outlines(), self._move_out, limit)

    async def _move_out(self, keys: list[BlobKey], short: int) -> None:
        """Move values of the thread to external storage, in this order, until `short` bytes of its state are saved."""
        for key in keys:
            if short <= 0 or self._objects is None or self._log.is_closing:
                return
            async with self._putting:
                blob = next((one for one in await self._shelf.stored([key]) if one.key == key), None)
                if blob is None or blob.is_external or not self._thread.store.has_blob(key):
                    continue
                moved = await self._objects.write(blob, f"value {key.hex()[:16]}")
                MOVED_VALUES.inc()
                self._log.append([PutBlobs((moved,))], Urgency.LAZY)
                short -= len(blob.data)


def size_of(blobs: Mapping[BlobKey, Blob]) -> int:
    return sum(blob.stored_bytes for blob in blobs.values())
