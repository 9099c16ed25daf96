"""What clients outside any guest read: the workflow's state with the live attempt's log over it, as any reader does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.store_replies import (
    PAGE_BYTES,
    blobs_page,
    delta_history,
    found,
    list_page,
    part_reply,
    state_found,
    state_listed,
)
from agentvisor.host.threads import Threads
from agentvisor.protocol.v1 import store_pb2

_MOST_THREADS = 100_000
_AT_A_TIME = 128
"""Checkpoints that are asked of a thread at once."""


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
                    return store_pb2.StoreReply(listed=await self._list(thread_id, request.list, PAGE_BYTES))
                case "delta_history":
                    asked = request.delta_history
                    thread = await self._threads.read(thread_id, namespace=Namespace(asked.namespace))
                    return delta_history(thread.store, asked)
                case "get_thread_state":
                    return state_found((await self._threads.state(thread_id)).store, request.get_thread_state)
                case "list_thread_state":
                    return state_listed((await self._threads.state(thread_id)).store, request.list_thread_state)
                case "get_part":
                    part = request.get_part
                    return part_reply(await self._threads.part(thread_id, BlobKey(part.key), part.offset, PAGE_BYTES))
                case _:
                    have = frozenset(BlobKey(key) for key in request.get_blobs.have)
                    keys = [BlobKey(key) for key in request.get_blobs.keys]
                    stored = await self._threads.stored_blobs(thread_id, keys, have=have, enough=PAGE_BYTES)
                    return blobs_page(stored)
        except NotFound:
            return _nothing(request)

    async def _list(self, thread_id: ThreadId, asked: store_pb2.ListCheckpoints, room: int) -> store_pb2.Listed:
        """A page of one thread, read no further than it goes: the next one must not read it all again."""
        page, listed = store_pb2.ListCheckpoints(), store_pb2.Listed()
        page.CopyFrom(asked)
        # A filter may leave few of many.
        most = min(asked.limit, _AT_A_TIME) if asked.limit and not asked.filter.fields else _AT_A_TIME
        while True:
            thread, last = await self._threads.page(thread_id, page, most)
            part = list_page(thread, page, last=last, room=room - listed.ByteSize())
            listed.checkpoints.extend(part.checkpoints)
            if last is None or part.more:
                listed.more = part.more
                return listed
            if (asked.limit and len(listed.checkpoints) >= asked.limit) or listed.ByteSize() > room:
                listed.more = True
                return listed
            page.after_id, page.after_namespace = last
            if asked.limit:
                page.limit = asked.limit - len(listed.checkpoints)

    async def list_all(self, asked: store_pb2.ListCheckpoints) -> store_pb2.StoreReply:
        """The checkpoints of every thread, by the threads' ids."""
        page = store_pb2.ListCheckpoints()
        page.CopyFrom(asked)
        reply = store_pb2.StoreReply(listed=store_pb2.Listed())
        for thread_id in await self._ids(after=asked.after_thread):
            if thread_id != asked.after_thread:
                page.after_id = page.after_namespace = ""
            try:
                part = await self._list(thread_id, page, PAGE_BYTES - reply.ByteSize())
            except NotFound:
                continue
            reply.listed.checkpoints.extend(part.checkpoints)
            if asked.HasField("limit"):
                page.limit = asked.limit - len(reply.listed.checkpoints)
                if page.limit <= 0:
                    break
            if part.more or reply.ByteSize() > PAGE_BYTES:
                reply.listed.more = True
                break
        return reply

    async def all_threads(self, only: ThreadId | None = None) -> AsyncIterator[Thread]:
        """Every thread with its records, by id, or one; what does not exist, or no longer, is left out."""
        for thread_id in [only] if only is not None else await self._ids():
            try:
                yield await self._threads.read(thread_id)
            except NotFound:
                continue

    async def _ids(self, *, after: str = "") -> list[ThreadId]:
        found = await self._threads.search(metadata={}, status=None, ids=None, limit=_MOST_THREADS, offset=0)
        return sorted(one for one in {*found, *self._held()} if one >= after)


def _nothing(request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
    """What a thread that does not exist holds."""
    match request.WhichOneof("kind"):
        case "get":
            return store_pb2.StoreReply(found=store_pb2.Found())
        case "list":
            return store_pb2.StoreReply(listed=store_pb2.Listed())
        case "delta_history":
            return store_pb2.StoreReply(delta_history=store_pb2.DeltaHistories())
        case "get_thread_state":
            return store_pb2.StoreReply(thread_state_found=store_pb2.ThreadStateFound())
        case "list_thread_state":
            return store_pb2.StoreReply(thread_state_listed=store_pb2.ThreadStateListed())
        case _:
            return store_pb2.StoreReply(blobs=store_pb2.Blobs())
