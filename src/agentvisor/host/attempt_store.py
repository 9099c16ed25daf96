"""The store as the one attempt that may write sees it: checks at the door, then the journal, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from agentvisor.core.copying import is_part_of
from agentvisor.core.errors import (
    Corrupt,
    InvalidInput,
    PermissionRefused,
    StateTooLarge,
    StorageUnavailable,
)
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import (
    Blob,
    Checkpoint,
    DeleteForRuns,
    Operation,
    Prune,
    PutBlobs,
)
from agentvisor.core.saves import check_save, is_save
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_state import StateChange
from agentvisor.host.attempt_effects import AttemptEffects
from agentvisor.host.attempt_log import AttemptLog, Log, batches
from agentvisor.host.attempt_state import AttemptState
from agentvisor.host.attempt_writes import AttemptWrites
from agentvisor.host.blob_shelf import BlobShelf, LoadBlobs
from agentvisor.host.boundary import Boundary
from agentvisor.host.door import Door, StoreLimits
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.external.shedding import move_before_compaction
from agentvisor.host.external.storage import Verify
from agentvisor.host.incoming import UNKNOWN, Incoming, What
from agentvisor.host.journal import Urgency
from agentvisor.host.metrics import MOVED_VALUES
from agentvisor.host.store_replies import (
    PAGE_BYTES,
    STORED,
    blobs_page,
    delta_history,
    found,
    keeps_latest,
    list_page,
    part_reply,
    state_found,
    state_listed,
)
from agentvisor.protocol.convert import (
    checkpoint_from_message,
    projection_from_message,
)
from agentvisor.protocol.v1 import store_pb2

_NAMED = 3
"""Channels that an error names."""


class AttemptStore:
    """Applies the SDK's requests to the host's view of the thread and journals them.

    The view was read after the attempt got its token (READCONS) and changes only through here.
    """

    def __init__(
        self,
        thread: Thread,
        journal: Log,
        load: LoadBlobs,
        limits: StoreLimits,
        objects: AttemptObjects | None = None,
        *,
        says: bool = True,
    ) -> None:
        """`says`: see Door."""
        self._thread = thread
        self._store = thread.store
        self._journal = journal
        self._limits = limits
        self._door = Door(thread, limits, says=says)
        self._objects = objects
        self._shelf = BlobShelf(
            self._store, load, max_value_bytes=limits.max_value, external=objects.storage if objects else None
        )
        self._log = AttemptLog(self._store, journal, objects)
        self._incoming = Incoming(thread, self._shelf, limits, objects)
        self._effects = AttemptEffects(thread, lambda one: self._log.append(one, Urgency.NOW), self._door)
        self._putting = asyncio.Lock()
        self._writes = AttemptWrites(thread, self._log, self._door, self._incoming, objects, putting=self._putting)
        self._state = AttemptState(
            thread,
            self._shelf,
            self._door,
            putting=self._putting,
            take_values=self._take_values,
            log=self._log_change,
        )
        self.boundary = Boundary(journal.until_fenced)

    async def call(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer one request; a write is answered when it is durable."""
        match request.WhichOneof("kind"):
            case "put":
                return await self._put(request.put)
            case "put_writes":
                return await self._writes.put(request.put_writes)
            case "put_part":
                await self._incoming.uploads.take(request.put_part)
                return STORED
            case "project":
                return self._project(request.project)
            case "get":
                return self._get(request.get)
            case "list":
                return store_pb2.StoreReply(listed=list_page(self._thread, request.list))
            case "get_blobs":
                return await self._get_blobs(request.get_blobs)
            case "get_part":
                asked = request.get_part
                return part_reply(await self._shelf.part(BlobKey(asked.key), asked.offset, PAGE_BYTES))
            case "delta_history":
                return delta_history(self._store, request.delta_history)
            case "effect":
                return await self._effects.effect(request.effect)
            case "question":
                return await self._effects.question(request.question)
            case "get_thread_state":
                return state_found(self._store, request.get_thread_state)
            case "list_thread_state":
                return state_listed(self._store, request.list_thread_state)
            case "change_thread_state":
                return await self._state.change(request.change_thread_state)
            case "delete_for_runs":
                return await self._apply(DeleteForRuns(frozenset(request.delete_for_runs.run_ids)))
            case "prune":
                return await self._apply(Prune(keep_latest=keeps_latest(request.prune)))
            case "copy_thread":
                raise PermissionRefused("a run works on its own thread alone: copy threads from outside, or over HTTP")
            case "delete_thread":
                raise PermissionRefused("a run cannot delete the thread that it runs on: delete it over HTTP")
            case kind:
                raise InvalidInput(f"this host does not know the request {kind}: it may be older than the SDK")

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _put(self, put: store_pb2.PutCheckpoint) -> store_pb2.StoreReply:
        checkpoint = checkpoint_from_message(put.checkpoint)
        kind = "channel"
        if is_save(checkpoint.namespace):
            check_save(checkpoint.namespace, checkpoint.checkpoint_id)
            kind = "save"
        self._door.check_record(checkpoint)
        names = {key: What(kind, name) for name, key in checkpoint.channels.items() if key is not None}
        # One at a time: another put may name a blob of this one, which must be in the log before it.
        async with self._putting, self._incoming.room_for(put.blobs), self._log.fresh() as fresh:
            await self._incoming.take(put.blobs, names, fresh)
            self._check_here(names, fresh)
            await self._move(fresh, names, checkpoint.stored_bytes, checkpoint)
            self._check_state(checkpoint, names, fresh)
            durable = self._log.append([*batches(list(fresh.values())), checkpoint], Urgency.NOW)
        self._effects.checkpoint_came()
        await durable
        await self.boundary.pass_by(checkpoint.namespace)
        return STORED

    def _check_here(self, names: Mapping[BlobKey, What], fresh: Mapping[BlobKey, Blob]) -> None:
        for key, what in names.items():
            if not self._incoming.has(key, fresh):
                raise Corrupt(
                    f"{what} names a value that thread {self._thread.thread_id} does not have", channel=what.name
                )

    def _check_state(
        self, checkpoint: Checkpoint, names: Mapping[BlobKey, What], fresh: Mapping[BlobKey, Blob]
    ) -> None:
        try:
            self._door.check_put(checkpoint, checkpoint.stored_bytes + _size(fresh))
        except StateTooLarge as error:
            largest = sorted(fresh.values(), key=lambda blob: len(blob.data), reverse=True)[:_NAMED]
            adds = ", ".join(f"{names.get(blob.key, UNKNOWN).name!r} ({len(blob.data)} bytes)" for blob in largest)
            if not adds:
                raise
            raise StateTooLarge(f"{error.message}; this checkpoint adds {adds}", **error.details) from error

    async def _move(
        self, fresh: dict[BlobKey, Blob], names: Mapping[BlobKey, What], bytes_with_it: int, coming: Checkpoint | None
    ) -> None:
        """Put values into external storage that are too large for the thread, or for which it has no room."""
        if self._objects is None:
            return
        await self._incoming.move_large(fresh, names)
        more = _size(fresh) + bytes_with_it
        moved = await self._incoming.move_some(fresh, names, self._door.missing_room(more, coming))
        if moved:
            MOVED_VALUES.inc(len(moved))
            self._log.append([*batches(moved)], Urgency.LAZY)

    @asynccontextmanager
    async def _take_values(
        self, blobs: Sequence[store_pb2.Blob], names: Mapping[BlobKey, What], bytes_with_them: int
    ) -> AsyncGenerator[dict[BlobKey, Blob]]:
        """Values of thread state, here and checked, to be logged while this lasts."""
        async with self._incoming.room_for(blobs), self._log.fresh() as fresh:
            await self._incoming.take(blobs, names, fresh)
            self._check_here(names, fresh)
            await self._move(fresh, names, bytes_with_them, None)
            yield fresh

    def _log_change(self, fresh: Mapping[BlobKey, Blob], change: StateChange) -> asyncio.Future[None]:
        return self._log.append([*batches(list(fresh.values())), change], Urgency.NOW)

    async def _apply(self, operation: Operation) -> store_pb2.StoreReply:
        """Forget something; not while a put is being checked, which may name what is forgotten."""
        async with self._putting:
            durable = self._log.append([operation], Urgency.NOW)
            seq = self._journal.last_seq
        await durable
        if self._objects is not None:
            self._objects.forgot(seq)
        return STORED

    @property
    def is_storing(self) -> bool:
        """Whether a request is still on its way into the log: external storage may keep it waiting."""
        return self._putting.locked()

    @property
    def share(self) -> float:
        """Of the limit that no compaction can free; what is left of the reserve stays free (core/room.py)."""
        return self._thread.unsheddable_bytes() / self._limits.max_state

    @property
    def limits(self) -> StoreLimits:
        return self._limits

    @property
    def keep(self) -> int:
        """Checkpoints kept in each namespace; 0 or less: all."""
        return self._store.keep

    def is_part_of(self, store: Store) -> bool:
        """Whether it holds nothing but what that one does."""
        return is_part_of(self._store, store)

    async def bring(self, operations: list[Operation], verify: Verify) -> None:
        """Journal operations of another thread's store, which were checked when they came into that one.

        `verify` compares what has become of its objects since.
        """
        async with self._putting:
            durable = self._log.append([await self._owned(one, verify) for one in operations], Urgency.NOW)
            self._door.weigh()
        await durable

    def _project(self, message: store_pb2.Projection) -> store_pb2.StoreReply:
        projection = projection_from_message(message)
        self._door.check_projection(projection)
        self._log.append([projection], Urgency.LAZY)
        return STORED

    async def _owned(self, operation: Operation, verify: Verify) -> Operation:
        """An operation of another thread's with objects of this thread's own: neither's deletion harms the other."""
        if not isinstance(operation, PutBlobs) or not any(blob.is_external for blob in operation.blobs):
            return operation
        if self._objects is None:
            raise StorageUnavailable("the thread to copy has values in external storage: set storage.url on this host")
        return PutBlobs(
            tuple([await self._objects.own(blob, verify) if blob.is_external else blob for blob in operation.blobs])
        )

    async def move_out(self, keys: list[BlobKey], short: int) -> None:
        """Move values of the thread to external storage, in this order, until `short` bytes of its state are saved."""
        for key in keys:
            if short <= 0 or self._objects is None or self._journal.is_closing:
                return
            async with self._putting:
                blob = next((one for one in await self._shelf.stored([key]) if one.key == key), None)
                if blob is None or blob.is_external or not self._store.has_blob(key):
                    continue
                moved = await self._objects.write(blob, f"value {key.hex()[:16]}")
                MOVED_VALUES.inc()
                self._log.append([PutBlobs((moved,))], Urgency.LAZY)
                short -= len(blob.data)

    async def prepare_compaction(self) -> None:
        """Make the thread's state so small, if there is external storage, that a compaction leaves nothing out."""
        if self._objects is not None:
            limit = self._thread.settings.state_bytes
            await move_before_compaction(self._objects.outlines(), self.move_out, limit)

    # --- reading ---------------------------------------------------------------------------------------------------

    def _get(self, asked: store_pb2.GetCheckpoint) -> store_pb2.StoreReply:
        wanted = CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None
        return found(self._store.get(Namespace(asked.namespace), wanted))

    async def _get_blobs(self, asked: store_pb2.GetBlobs) -> store_pb2.StoreReply:
        have = frozenset(BlobKey(key) for key in asked.have)
        return blobs_page(await self._shelf.stored((BlobKey(key) for key in asked.keys), have=have))


def _size(blobs: Mapping[BlobKey, Blob]) -> int:
    return sum(blob.stored_bytes for blob in blobs.values())
