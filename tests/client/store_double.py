"""A host in memory: answers the SDK's requests by the rules of core's store, and remembers what it was asked.

It is held to the real host by the conformance and contract tests, which run on both.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from agentvisor.core.applying import apply
from agentvisor.core.copying import needed_blobs, operations
from agentvisor.core.errors import AgentVisorError, Conflict, Corrupt, InvalidInput, NotFound
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Checkpoint, CheckpointTuple, DeleteForRuns, Operation, Prune, PutBlobs
from agentvisor.core.store import Store
from agentvisor.host.store_replies import delta_history, keeps_latest
from agentvisor.protocol.blobs import decode
from agentvisor.protocol.convert import (
    blob_from_message,
    blob_to_message,
    checkpoint_from_message,
    projection_from_message,
    tuple_to_message,
    writes_from_message,
)
from agentvisor.protocol.errors import to_error
from agentvisor.protocol.metadata import metadata_from_bytes, metadata_from_struct
from agentvisor.protocol.v1 import store_pb2

MAX_VALUE = 1 << 30


@dataclass
class ThreadDouble:
    """One thread's store, and the values of its blobs."""

    store: Store = field(default_factory=Store)
    values: dict[BlobKey, bytes] = field(default_factory=dict)


class StoreDouble:
    """Threads by id. `blob_page` and `list_page` are small, so that paging is met in every test."""

    def __init__(
        self,
        *,
        blob_page: int = 20_000,
        list_page: int = 3,
        store: type[Store] = Store,
        applying: Callable[[Store, Operation], None] = apply,
        keep: int = 0,
    ) -> None:
        """`store` and `applying` may be mutants, which tests must find out; `keep`: checkpoints of a namespace."""
        self._keep = keep
        self._store = store
        self._apply = applying
        self.threads: dict[str, ThreadDouble] = {}
        self.uploads: dict[bytes, bytearray] = {}
        self.requests: list[store_pb2.StoreRequest] = []
        self.refuse_next: list[AgentVisorError] = []
        """Errors that the next requests are answered with, without being carried out."""
        self.refuse_next_puts: list[AgentVisorError] = []
        """The same for checkpoints alone."""
        self._blob_page = blob_page
        self._list_page = list_page
        self._lock = threading.Lock()

    def __call__(self, thread_id: str | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        with self._lock:
            self.requests.append(request)
            if self.refuse_next:
                return store_pb2.StoreReply(error=to_error(self.refuse_next.pop(0)))
            if self.refuse_next_puts and request.HasField("put"):
                return store_pb2.StoreReply(error=to_error(self.refuse_next_puts.pop(0)))
            try:
                return self._answer(thread_id, request)
            except AgentVisorError as error:
                return store_pb2.StoreReply(error=to_error(error))

    def asked(self, kind: str) -> list[store_pb2.StoreRequest]:
        return [request for request in self.requests if request.WhichOneof("kind") == kind]

    def puts(self) -> list[store_pb2.PutCheckpoint]:
        return [request.put for request in self.asked("put")]

    def _answer(self, thread_id: str | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        if request.WhichOneof("kind") == "delete_for_runs":
            for one in [self.threads[thread_id]] if thread_id in self.threads else list(self.threads.values()):
                self._apply(one.store, DeleteForRuns(frozenset(request.delete_for_runs.run_ids)))
            return store_pb2.StoreReply(stored=store_pb2.Stored())
        if thread_id is None:
            return self._list(request.list, self.threads)
        if request.WhichOneof("kind") in {"put", "put_writes"}:
            self.threads.setdefault(thread_id, self._new())
        thread = self.threads.get(thread_id, self._new())
        match request.WhichOneof("kind"):
            case "put":
                return self._put(thread, request.put)
            case "put_writes":
                self._apply(thread.store, writes_from_message(request.put_writes))
            case "put_part":
                part = request.put_part
                upload = self.uploads.setdefault(part.upload, bytearray(part.total))
                upload[part.offset : part.offset + len(part.data)] = part.data
            case "project":
                self._apply(thread.store, projection_from_message(request.project))
            case "get":
                return self._get(thread, request.get)
            case "list":
                return self._list(request.list, {thread_id: thread})
            case "get_blobs":
                return self._get_blobs(thread, request.get_blobs)
            case "delta_history":
                return delta_history(thread.store, request.delta_history)
            case "delete_thread":
                self.threads.pop(thread_id, None)
            case "prune":
                self._apply(thread.store, Prune(keeps_latest(request.prune)))
            case "copy_thread":
                self._copy(thread_id, request.copy_thread.target_thread_id)
            case kind:
                raise InvalidInput(f"unknown request {kind}")
        return store_pb2.StoreReply(stored=store_pb2.Stored())

    def _put(self, thread: ThreadDouble, put: store_pb2.PutCheckpoint) -> store_pb2.StoreReply:
        for message in put.blobs:
            data = bytes(self.uploads.pop(message.upload)) if message.upload else message.data
            blob = replace(blob_from_message(message), data=data, stored_size=0)
            base = thread.store.blobs.get(blob.base) if blob.base else None
            if blob.base and base is None:
                raise Corrupt("the thread does not have the base")
            if blob.depth != (0 if base is None else base.depth + 1):
                raise Corrupt("wrong depth")
            thread.values[blob.key] = decode(blob, thread.values[base.key] if base else None, MAX_VALUE)
            self._apply(thread.store, PutBlobs((blob,)))
        checkpoint = checkpoint_from_message(put.checkpoint)
        if any(key is not None and key not in thread.store.blobs for key in checkpoint.channels.values()):
            raise Corrupt("a channel names a value that the thread does not have")
        self._apply(thread.store, checkpoint)
        return store_pb2.StoreReply(stored=store_pb2.Stored())

    def _new(self) -> ThreadDouble:
        return ThreadDouble(self._store(keep=self._keep))

    def _copy(self, source_id: str, target_id: str) -> None:
        if source_id not in self.threads:
            raise NotFound("no such thread")
        if target_id in self.threads:
            raise Conflict("holds checkpoints")
        source, target = self.threads[source_id], self._new()
        self._apply(target.store, PutBlobs(tuple(source.store.chain(needed_blobs(source.store)))))
        for operation in operations(source.store):
            self._apply(target.store, operation)
        target.values.update(source.values)
        self.threads[target_id] = target

    def _get(self, thread: ThreadDouble, asked: store_pb2.GetCheckpoint) -> store_pb2.StoreReply:
        found = thread.store.get(Namespace(asked.namespace), CheckpointId(asked.checkpoint_id) or None)
        reply = store_pb2.StoreReply(found=store_pb2.Found())
        if found is not None:
            reply.found.tuple.CopyFrom(tuple_to_message(found))
        return reply

    def _list(self, asked: store_pb2.ListCheckpoints, threads: dict[str, ThreadDouble]) -> store_pb2.StoreReply:
        reply = store_pb2.StoreReply(listed=store_pb2.Listed())
        left = asked.limit if asked.HasField("limit") else None
        for thread_id, checkpoint in self._matching(asked, threads):
            if left == 0:
                break
            if len(reply.listed.checkpoints) == self._list_page:
                reply.listed.more = True
                break
            left = None if left is None else left - 1
            one = CheckpointTuple(checkpoint, threads[thread_id].store.pending(checkpoint.key))
            reply.listed.checkpoints.add(thread_id=thread_id, tuple=tuple_to_message(one))
        return reply

    def _matching(
        self, asked: store_pb2.ListCheckpoints, threads: dict[str, ThreadDouble]
    ) -> Iterator[tuple[str, Checkpoint]]:
        wanted = metadata_from_struct(asked.filter)
        after = (asked.after_id, asked.after_namespace)
        for thread_id in sorted(threads):
            if asked.all_threads and thread_id < asked.after_thread:
                continue
            for checkpoint in threads[thread_id].store.newest_first(
                Namespace(asked.namespace) if asked.HasField("namespace") else None,
                checkpoint_id=CheckpointId(asked.checkpoint_id) or None,
                before=CheckpointId(asked.before) or None,
            ):
                is_passed = asked.after_id and (checkpoint.checkpoint_id, checkpoint.namespace) >= after
                if is_passed and asked.after_thread in {"", thread_id}:
                    continue
                metadata = metadata_from_bytes(checkpoint.metadata)
                if all(key in metadata and metadata[key] == value for key, value in wanted.items()):
                    yield thread_id, checkpoint

    def _get_blobs(self, thread: ThreadDouble, asked: store_pb2.GetBlobs) -> store_pb2.StoreReply:
        reply, size = store_pb2.StoreReply(blobs=store_pb2.Blobs()), 0
        have = frozenset(BlobKey(key) for key in asked.have)
        for blob in thread.store.chain((BlobKey(key) for key in asked.keys), have=have):
            if size and size + len(blob.data) > self._blob_page:
                break
            size += len(blob.data)
            reply.blobs.blobs.append(blob_to_message(blob))
        return reply
