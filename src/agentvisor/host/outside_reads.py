"""What clients outside any guest read: the workflow's state with the live attempt's log over it, as any reader does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.store_replies import PAGE_BYTES, blobs_page, delta_history, found, list_page, part_reply
from agentvisor.host.threads import Threads
from agentvisor.protocol.v1 import store_pb2

_MOST_THREADS = 100_000


class OutsideReads:
    """Answers the reading requests of an operator's client."""

    def __init__(self, threads: Threads, held: Callable[[], Iterable[ThreadId]]) -> None:
        """`held`: the threads that are being written to here, which Temporal's list may not show yet."""
        self._threads = threads
        self._held = held

    async def answer(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer a read of one thread; one that does not exist holds nothing."""
        try:
            match request.WhichOneof("kind"):
                case "get":
                    wanted = CheckpointId(request.get.checkpoint_id) if request.get.checkpoint_id else None
                    namespace = Namespace(request.get.namespace)
                    thread = await self._threads.read(
                        thread_id, namespace=namespace, checkpoint_id=wanted, newest=0 if wanted else 1
                    )
                    return found(thread.store.get(namespace, wanted))
                case "list":
                    return list_page(await self._threads.read(thread_id), request.list)
                case "delta_history":
                    asked = request.delta_history
                    thread = await self._threads.read(thread_id, namespace=Namespace(asked.namespace))
                    return delta_history(thread.store, asked)
                case "get_part":
                    part = request.get_part
                    return part_reply(await self._threads.part(thread_id, BlobKey(part.key), part.offset, PAGE_BYTES))
                case _:
                    have = frozenset(BlobKey(key) for key in request.get_blobs.have)
                    keys = [BlobKey(key) for key in request.get_blobs.keys]
                    return blobs_page(await self._threads.stored_blobs(thread_id, keys, have=have))
        except NotFound:
            return _nothing(request)

    async def list_all(self, asked: store_pb2.ListCheckpoints) -> store_pb2.StoreReply:
        """The checkpoints of every thread, a page for each thread."""
        page = store_pb2.ListCheckpoints()
        page.CopyFrom(asked)
        reply = store_pb2.StoreReply(listed=store_pb2.Listed())
        left = asked.limit if asked.HasField("limit") else None
        async for thread in self.all_threads(after=asked.after_thread):
            if left is not None:
                page.limit = left
            part = list_page(thread, page).listed
            reply.listed.checkpoints.extend(part.checkpoints)
            page.after_id = page.after_namespace = ""
            if left is not None:
                left -= len(part.checkpoints)
                if left <= 0:
                    break
            if part.more or reply.ByteSize() > PAGE_BYTES:
                reply.listed.more = True
                break
        return reply

    async def all_threads(self, only: ThreadId | None = None, *, after: str = "") -> AsyncIterator[Thread]:
        """Every thread with its records, by id, or one; what does not exist, or no longer, is left out."""
        listed = [only] if only is not None else await self._listed()
        for thread_id in (one for one in listed if one >= after):
            try:
                yield await self._threads.read(thread_id)
            except NotFound:
                continue

    async def _listed(self) -> list[ThreadId]:
        found = await self._threads.search(metadata={}, status=None, ids=None, limit=_MOST_THREADS, offset=0)
        return sorted({*found, *self._held()})


def _nothing(request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
    """What a thread that does not exist holds."""
    match request.WhichOneof("kind"):
        case "get":
            return store_pb2.StoreReply(found=store_pb2.Found())
        case "list":
            return store_pb2.StoreReply(listed=store_pb2.Listed())
        case "delta_history":
            return store_pb2.StoreReply(delta_history=store_pb2.DeltaHistories())
        case _:
            return store_pb2.StoreReply(blobs=store_pb2.Blobs())
