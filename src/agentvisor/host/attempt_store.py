"""The store as the one attempt that may write sees it: checks at the door, then the journal, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from agentvisor.core.copying import is_part_of
from agentvisor.core.errors import (
    InvalidInput,
    PermissionRefused,
    StateTooLarge,
)
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import (
    Blob,
    Checkpoint,
    DeleteForRuns,
    Operation,
    Prune,
)
from agentvisor.core.saves import check_save, is_save
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_state import StateChange
from agentvisor.host.attempt_effects import AttemptEffects
from agentvisor.host.attempt_log import AttemptLog, Log, batches
from agentvisor.host.attempt_state import AttemptState
from agentvisor.host.attempt_values import AttemptValues, size_of
from agentvisor.host.attempt_writes import AttemptWrites
from agentvisor.host.blob_shelf import BlobShelf, LoadBlobs
from agentvisor.host.boundary import Boundary
from agentvisor.host.door import Door, StoreLimits
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.external.storage import Verify
from agentvisor.host.incoming import UNKNOWN, Incoming, What
from agentvisor.host.journal import Urgency
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
        self._values = AttemptValues(
            thread, self._shelf, self._incoming, self._door, self._log, objects=objects, putting=self._putting
        )
        self._state = AttemptState(
            thread,
            self._shelf,
            self._door,
            putting=self._putting,
            take_values=self._values.taken,
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
        taken = self._values.taken(put.blobs, names, checkpoint.stored_bytes, checkpoint)
        async with self._putting, taken as fresh:
            self._check_state(checkpoint, names, fresh)
            durable = self._log.append([*batches(list(fresh.values())), checkpoint], Urgency.NOW)
        self._effects.checkpoint_came()
        await durable
        await self.boundary.pass_by(checkpoint.namespace)
        return STORED

    def _check_state(
        self, checkpoint: Checkpoint, names: Mapping[BlobKey, What], fresh: Mapping[BlobKey, Blob]
    ) -> None:
        try:
            self._door.check_put(checkpoint, checkpoint.stored_bytes + size_of(fresh))
        except StateTooLarge as error:
            largest = sorted(fresh.values(), key=lambda blob: len(blob.data), reverse=True)[:_NAMED]
            adds = ", ".join(f"{names.get(blob.key, UNKNOWN).name!r} ({len(blob.data)} bytes)" for blob in largest)
            if not adds:
                raise
            raise StateTooLarge(f"{error.message}; this checkpoint adds {adds}", **error.details) from error

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
            durable = self._log.append([await self._values.owned(one, verify) for one in operations], Urgency.NOW)
            self._door.weigh()
        await durable

    def _project(self, message: store_pb2.Projection) -> store_pb2.StoreReply:
        projection = projection_from_message(message)
        self._door.check_projection(projection)
        self._log.append([projection], Urgency.LAZY)
        return STORED

    async def prepare_compaction(self) -> None:
        """See AttemptValues."""
        await self._values.prepare_compaction()

    # --- reading ---------------------------------------------------------------------------------------------------

    def _get(self, asked: store_pb2.GetCheckpoint) -> store_pb2.StoreReply:
        wanted = CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None
        return found(self._store.get(Namespace(asked.namespace), wanted))

    async def _get_blobs(self, asked: store_pb2.GetBlobs) -> store_pb2.StoreReply:
        have = frozenset(BlobKey(key) for key in asked.have)
        return blobs_page(await self._shelf.stored((BlobKey(key) for key in asked.keys), have=have))
