"""What one attempt does to its thread: applied to the host's view of it, and journalled, in the same order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Protocol

from agentvisor.core.applying import apply
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob, Operation, PutBlobs
from agentvisor.core.store import Store
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.journal import Urgency
from agentvisor.protocol.convert import operation_to_bytes

_BATCH_BYTES = 512_000
"""Of blobs in one operation."""


class Log(Protocol):
    """Where operations go: the journal, or nowhere while a write is rehearsed."""

    def append(self, entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:
        """Take the operations; the future is done when they are durable."""
        ...

    @property
    def last_seq(self) -> int:
        """Of the operation that was appended last."""
        ...

    @property
    def is_closing(self) -> bool:
        """Nothing more is taken."""
        ...

    async def until_fenced(self) -> None:
        """Return when the attempt is over."""
        ...


class AttemptLog:
    """The way into the log, which keeps the view and the objects in external storage in step with it."""

    def __init__(self, store: Store, journal: Log, objects: AttemptObjects | None) -> None:
        self._store = store
        self._journal = journal
        self._objects = objects

    def append(self, operations: list[Operation], urgency: Urgency) -> asyncio.Future[None]:
        """Apply the operations and log them; the future is done when they are durable."""
        entries: list[bytes] = []
        for operation in operations:
            apply(self._store, operation)
            entries.append(operation_to_bytes(operation))
        durable = self._journal.append(entries, urgency)
        if self._objects is not None:
            logged = [blob for operation in operations if isinstance(operation, PutBlobs) for blob in operation.blobs]
            self._objects.logged(logged, self._journal.last_seq)
        return durable

    @property
    def is_closing(self) -> bool:
        """Nothing more is taken."""
        return self._journal.is_closing

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[dict[BlobKey, Blob]]:
        """Blobs on their way into the log. Where they do not get there, a later request must bring them again."""
        fresh: dict[BlobKey, Blob] = {}
        try:
            yield fresh
        except BaseException:
            self.forget(fresh)
            raise

    def forget(self, fresh: dict[BlobKey, Blob], kept: Collection[BlobKey | None] = ()) -> None:
        """Take blobs back that will not be logged."""
        doomed = [blob for key, blob in fresh.items() if key not in kept]
        for blob in reversed(doomed):
            self._store.discard_blob(blob.key)
            del fresh[blob.key]
        if self._objects is not None:
            self._objects.discard(doomed)


def batches(blobs: list[Blob]) -> Iterator[PutBlobs]:
    """Blobs in operations of a bounded size, so that no signal carries more than one large value."""
    batch, size = list[Blob](), 0
    for blob in blobs:
        if batch and size + blob.stored_bytes > _BATCH_BYTES:
            yield PutBlobs(tuple(batch))
            batch, size = [], 0
        batch.append(blob)
        size += blob.stored_bytes
    if batch:
        yield PutBlobs(tuple(batch))
