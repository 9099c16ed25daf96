"""The store as the one attempt that may write sees it: checks at the door, then the journal, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

from google.protobuf.struct_pb2 import Struct

from agentvisor.core.applying import apply
from agentvisor.core.delta import histories
from agentvisor.core.errors import (
    Corrupt,
    InvalidInput,
    PermissionRefused,
    ValueTooLarge,
)
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Blob, Checkpoint, CheckpointTuple, DeleteForRuns, Operation, Prune, PutBlobs
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.host.blob_shelf import BlobShelf, LoadBlobs
from agentvisor.host.boundary import Boundary
from agentvisor.host.door import Door, StoreLimits
from agentvisor.host.journal import Urgency
from agentvisor.protocol.convert import (
    blob_from_message,
    blob_to_message,
    checkpoint_from_message,
    operation_to_bytes,
    projection_from_message,
    tuple_to_message,
    writes_from_message,
    writes_to_message,
)
from agentvisor.protocol.v1 import store_pb2

PAGE_BYTES = 2_000_000
"""Of a reply to the SDK; gRPC's default limit is 4 MB."""
_BATCH_BYTES = 512_000
"""Of blobs in one operation."""


class Log(Protocol):
    """Where operations go: the journal, or nowhere while a write is rehearsed."""

    def append(self, entries: list[bytes], urgency: Urgency) -> asyncio.Future[None]:
        """Take the operations; the future is done when they are durable."""
        ...

    async def until_fenced(self) -> None:
        """Return when the attempt is over."""
        ...


class AttemptStore:
    """Applies the SDK's requests to the host's view of the thread and journals them.

    The view was read after the attempt got its token (READCONS) and changes only through here.
    """

    def __init__(self, thread: Thread, journal: Log, load: LoadBlobs, limits: StoreLimits) -> None:
        self._thread = thread
        self._store = thread.store
        self._journal = journal
        self._limits = limits
        self._door = Door(thread, limits)
        self._shelf = BlobShelf(self._store, load, max_value_bytes=limits.max_value)
        self._putting = asyncio.Lock()
        self.boundary = Boundary(journal.until_fenced)

    async def call(self, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer one request; a write is answered when it is durable."""
        match request.WhichOneof("kind"):
            case "put":
                return await self._put(request.put)
            case "put_writes":
                return await self._put_writes(request.put_writes)
            case "project":
                return self._project(request.project)
            case "get":
                return self._get(request.get)
            case "list":
                return list_page(self._thread, request.list)
            case "get_blobs":
                return await self._get_blobs(request.get_blobs)
            case "delta_history":
                return delta_history(self._store, request.delta_history)
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
        self._door.check_record(checkpoint)
        # One at a time: another put may name a blob of this one, which must be in the log before it.
        async with self._putting:
            fresh: list[Blob] = []
            try:
                await self._check_blobs(put.blobs, checkpoint, fresh)
                self._door.check_state(checkpoint.stored_bytes + sum(blob.stored_bytes for blob in fresh), checkpoint)
            except BaseException:
                for blob in reversed(fresh):  # not journalled: a later put must bring it again
                    self._store.discard_blob(blob.key)
                raise
            durable = self._log([*batches(fresh), checkpoint], Urgency.NOW)
        await durable
        await self.boundary.pass_by(checkpoint.namespace)
        return _STORED

    async def _apply(self, operation: Operation) -> store_pb2.StoreReply:
        """Forget something; not while a put is being checked, which may name what is forgotten."""
        async with self._putting:
            durable = self._log([operation], Urgency.NOW)
        await durable
        return _STORED

    @property
    def limits(self) -> StoreLimits:
        return self._limits

    @property
    def keep(self) -> int:
        """Checkpoints kept in each namespace; 0 or less: all."""
        return self._store.keep

    @property
    def holds_checkpoints(self) -> bool:
        return bool(self._store.checkpoints)

    async def bring(self, operations: list[Operation]) -> None:
        """Journal operations of another thread's store, which were checked when they came into that one."""
        async with self._putting:
            durable = self._log(operations, Urgency.NOW)
            self._door = Door(self._thread, self._limits)  # which weighs the thread anew
        await durable

    async def _check_blobs(self, messages: Iterable[store_pb2.Blob], checkpoint: Checkpoint, fresh: list[Blob]) -> None:
        """Add the blobs that are new here to `fresh`, each decoded and found to be what its key says."""
        names = {key: name for name, key in checkpoint.channels.items() if key is not None}
        for message in messages:
            blob = blob_from_message(message)
            if self._is_there(blob.key, fresh):
                continue
            limit = self._limits.max_inline_value
            if blob.stored_bytes > limit:
                raise ValueTooLarge(
                    f"channel {names.get(blob.key, '?')!r} of thread {self._thread.thread_id} has {blob.stored_bytes} "
                    f"bytes as stored, the limit is {limit} (storage.max_inline_value)",
                    channel=names.get(blob.key, ""),
                    limit=str(limit),
                )
            if blob.base is not None and not self._is_there(blob.base, fresh):
                # It may still be in the workflow, which has not yet applied what prunes it: it will be gone.
                raise Corrupt(f"channel {names.get(blob.key, '?')!r} is a difference from a value that is gone")
            await self._shelf.check(blob)
            self._store.add_blob(blob)
            fresh.append(blob)
        for key, name in names.items():
            if not self._is_there(key, fresh):
                raise Corrupt(
                    f"channel {name!r} names a value that thread {self._thread.thread_id} does not have", channel=name
                )

    def _is_there(self, key: BlobKey, fresh: list[Blob]) -> bool:
        """What nothing needs may be at hand, loaded for a reader, and is gone in the workflow once it has caught up."""
        return self._store.has_blob(key) or any(blob.key == key for blob in fresh)

    async def _put_writes(self, message: store_pb2.TaskWrites) -> store_pb2.StoreReply:
        writes = self._door.admitted_writes(writes_from_message(message))
        if writes is not None:
            await self._log([writes], Urgency.SOON)
        return _STORED

    def _project(self, message: store_pb2.Projection) -> store_pb2.StoreReply:
        projection = projection_from_message(message)
        self._door.check_projection(projection)
        self._log([projection], Urgency.LAZY)
        return _STORED

    def _log(self, operations: list[Operation], urgency: Urgency) -> asyncio.Future[None]:
        entries: list[bytes] = []
        for operation in operations:
            apply(self._store, operation)
            entries.append(operation_to_bytes(operation))
        return self._journal.append(entries, urgency)

    # --- reading ---------------------------------------------------------------------------------------------------

    def _get(self, asked: store_pb2.GetCheckpoint) -> store_pb2.StoreReply:
        wanted = CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None
        return found(self._store.get(Namespace(asked.namespace), wanted))

    async def _get_blobs(self, asked: store_pb2.GetBlobs) -> store_pb2.StoreReply:
        have = frozenset(BlobKey(key) for key in asked.have)
        return blobs_page(await self._shelf.stored((BlobKey(key) for key in asked.keys), have=have))


STRATEGIES = {"keep_latest": True, "delete": False}
_STORED = store_pb2.StoreReply(stored=store_pb2.Stored())


def keeps_latest(asked: store_pb2.PruneThread) -> bool:
    """Whether a strategy keeps the newest checkpoints, or nothing; `InvalidInput` for one that does not exist."""
    if asked.strategy not in STRATEGIES:
        raise InvalidInput(
            f"there is no prune strategy {asked.strategy[:40]!r}: use 'keep_latest' or 'delete'", field="strategy"
        )
    return STRATEGIES[asked.strategy]


def found(one: CheckpointTuple | None) -> store_pb2.StoreReply:
    """The reply to a get; there may be no such checkpoint."""
    reply = store_pb2.StoreReply(found=store_pb2.Found())
    if one is not None:
        reply.found.tuple.CopyFrom(tuple_to_message(one))
    return reply


def blobs_page(blobs: Iterable[Blob]) -> store_pb2.StoreReply:
    """As many as fit; the SDK asks again for the rest."""
    reply, size = store_pb2.StoreReply(blobs=store_pb2.Blobs()), 0
    for blob in blobs:
        if size and size + blob.stored_bytes > PAGE_BYTES:
            break
        reply.blobs.blobs.append(blob_to_message(blob))
        size += blob.stored_bytes
    return reply


def delta_history(store: Store, asked: store_pb2.DeltaHistory) -> store_pb2.StoreReply:
    """What the delta channels of a checkpoint are made of: writes of its ancestors, from the nearest value on."""
    reply = store_pb2.StoreReply(delta_history=store_pb2.DeltaHistories())
    wanted = CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None
    for channel, history in histories(store, Namespace(asked.namespace), wanted, tuple(asked.channels)).items():
        message = reply.delta_history.channels.add(channel=channel, seed=history.seed or b"")
        message.writes.extend(writes_to_message(one) for one in history.writes)
    return reply


def list_page(thread: Thread, asked: store_pb2.ListCheckpoints) -> store_pb2.StoreReply:
    """A page of one thread's checkpoints, newest first."""
    reply, size = store_pb2.StoreReply(listed=store_pb2.Listed()), 0
    for checkpoint in _listed(thread, asked):
        if size > PAGE_BYTES:
            reply.listed.more = True
            break
        one = CheckpointTuple(checkpoint, thread.store.pending(checkpoint.key))
        size += checkpoint.stored_bytes + sum(writes.stored_bytes for writes in one.pending)
        reply.listed.checkpoints.append(
            store_pb2.ListedCheckpoint(thread_id=thread.thread_id, tuple=tuple_to_message(one))
        )
    return reply


def _listed(thread: Thread, asked: store_pb2.ListCheckpoints) -> Iterator[Checkpoint]:
    left = asked.limit if asked.HasField("limit") else None
    after = (asked.after_id, asked.after_namespace) if asked.after_id else None
    for checkpoint in thread.store.newest_first(
        Namespace(asked.namespace) if asked.HasField("namespace") else None,
        checkpoint_id=CheckpointId(asked.checkpoint_id) if asked.checkpoint_id else None,
        before=CheckpointId(asked.before) if asked.before else None,
    ):
        if after is not None and (checkpoint.checkpoint_id, checkpoint.namespace) >= after:
            continue
        if not matches(checkpoint.metadata, asked.filter):
            continue
        if left is not None:
            if left == 0:
                return
            left -= 1
        yield checkpoint


def matches(metadata: bytes, wanted: Struct) -> bool:
    """Every wanted key is there with an equal value."""
    if not wanted.fields:
        return True
    fields = Struct.FromString(metadata).fields
    return all(key in fields and fields[key] == value for key, value in wanted.fields.items())


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
