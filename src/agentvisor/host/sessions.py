"""Clients outside any guest: reads merge like any reader's, writes go through an attempt held for them here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

from agentvisor.core.errors import Conflict, Fenced, InvalidInput, NotFound, Unavailable
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.runs import RunKind
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_store import StoreLimits, blobs_page, found, list_page
from agentvisor.host.live_attempt import LiveAttempt, answered
from agentvisor.host.rehearsal import rehearse
from agentvisor.host.run_activity import Attempts
from agentvisor.host.threads import Threads
from agentvisor.protocol.v1 import run_pb2, store_pb2

_OPEN_SECONDS = 10.0
_TRIES = 3


class Sessions:
    """One session a thread, opened by the first write and closed by silence."""

    def __init__(
        self,
        threads: Threads,
        attempts: Attempts,
        limits: StoreLimits,
        *,
        own_queue: str,
        heartbeat_timeout_ms: int,
        timeout_ms: int,
    ) -> None:
        self._threads = threads
        self._attempts = attempts
        self._limits = limits
        self._own_queue = own_queue
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._timeout_ms = timeout_ms
        # Another host's session may be in the way until it is idle, or until the loss of that host is noticed.
        self._open_seconds = _OPEN_SECONDS + heartbeat_timeout_ms / 1000
        self._sessions: dict[ThreadId, RunId] = {}
        self._opening: dict[ThreadId, asyncio.Lock] = {}

    async def call(self, thread_id: ThreadId | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer one request of an operator's client."""
        return await answered(self._call(thread_id, request))

    async def _call(self, thread_id: ThreadId | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        kind = request.WhichOneof("kind")
        if kind == "list" and request.list.all_threads:
            return await self._list_all(request.list)
        if thread_id is None:
            raise InvalidInput('name the thread: config={"configurable": {"thread_id": ...}}', field="thread_id")
        match kind:
            case "get" | "list" | "get_blobs":
                live = self._live(thread_id)
                if live is not None and live.store.done() and live.store.exception() is None:
                    live.session_calls += 1
                    return await live.store.result().call(request)
                return await self._read(thread_id, request)
            case "put" | "put_writes" | "project":
                return await self._write(thread_id, request)
            case "delete_thread":
                return await self._delete(thread_id)
            case _:
                raise InvalidInput(f"this host does not know the request {kind}: it may be older than the SDK")

    # --- reading ---------------------------------------------------------------------------------------------------

    async def _read(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
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
                case _:
                    have = frozenset(BlobKey(key) for key in request.get_blobs.have)
                    keys = [BlobKey(key) for key in request.get_blobs.keys]
                    return blobs_page(await self._threads.stored_blobs(thread_id, keys, have=have))
        except NotFound:
            return _nothing(request)

    async def _list_all(self, asked: store_pb2.ListCheckpoints) -> store_pb2.StoreReply:
        """The checkpoints of every thread, a page for each thread."""
        page = store_pb2.ListCheckpoints()
        page.CopyFrom(asked)
        reply = store_pb2.StoreReply(listed=store_pb2.Listed())
        left = asked.limit if asked.HasField("limit") else None
        async for thread in self._all_threads(asked.after_thread):
            if left is not None:
                page.limit = left
            part = list_page(thread, page).listed
            reply.listed.checkpoints.extend(part.checkpoints)
            page.after_id = page.after_namespace = ""
            if left is not None:
                left -= len(part.checkpoints)
                if left <= 0:
                    break
            if part.more or reply.ByteSize() > _PAGE:
                reply.listed.more = True
                break
        return reply

    async def _all_threads(self, after: str) -> AsyncIterator[Thread]:
        ids = sorted(await self._threads.search(metadata={}, status=None, ids=None, limit=100_000, offset=0))
        for thread_id in ids:
            if thread_id < after:
                continue
            try:
                yield await self._threads.read(thread_id)
            except NotFound:
                continue

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _write(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Through the thread's session; where that ends meanwhile, through another (a write sent twice counts once)."""
        failed: Exception | None = None
        if self._live(thread_id) is None and not await self._exists(thread_id):
            await rehearse(thread_id, request, self._limits)
        for _ in range(_TRIES):
            live = await self._session(thread_id)
            try:
                store = await asyncio.shield(live.store)
                live.session_calls += 1
                return await store.call(request)
            except (Fenced, Unavailable) as error:
                failed = error
        raise Unavailable(f"thread {thread_id} could not be held for writing: try again") from failed

    async def _exists(self, thread_id: ThreadId) -> bool:
        try:
            await self._threads.get(thread_id)
        except NotFound:
            return False
        return True

    def _live(self, thread_id: ThreadId) -> LiveAttempt | None:
        run_id = self._sessions.get(thread_id)
        live = None if run_id is None else self._attempts.session(run_id)
        return None if live is None or live.journal.is_closing else live

    async def _session(self, thread_id: ThreadId) -> LiveAttempt:
        """The thread's session, opened where there is none. `Conflict` while a run is active."""
        async with self._opening.setdefault(thread_id, asyncio.Lock()):
            live = self._live(thread_id)
            if live is not None:
                return live
            spec = run_pb2.RunSpec(
                run_id=str(uuid4()),
                agent="session",
                kind=run_pb2.RunKind.ValueType(RunKind.SESSION),
                host_queue=self._own_queue,
                heartbeat_timeout_ms=self._heartbeat_timeout_ms,
                timeout_ms=self._timeout_ms,
            )
            run_id = RunId(spec.run_id)
            await self._threads.start_run(thread_id, spec, create=True, thread_metadata={})
            self._sessions[thread_id] = run_id
            try:
                async with asyncio.timeout(self._open_seconds):
                    return await self._attempts.session_came(run_id)
            except TimeoutError as error:
                raise Unavailable(
                    f"the session for thread {thread_id} did not open in {self._open_seconds:g} s"
                ) from error

    async def _delete(self, thread_id: ThreadId) -> store_pb2.StoreReply:
        try:
            thread = await self._threads.get(thread_id)
            active = next((run for run in thread.runs.values() if run.is_agent and not run.status.terminal), None)
            if active is not None:
                raise Conflict(
                    f"thread {thread_id} is busy with run {active.run_id}: cancel it first", run_id=active.run_id
                )
        except NotFound:
            pass
        with suppress(NotFound):
            await self._threads.delete(thread_id)
        live = self._live(thread_id)
        if live is not None:
            live.journal.fence()
        self._sessions.pop(thread_id, None)
        return store_pb2.StoreReply(stored=store_pb2.Stored())


_PAGE = 2_000_000


def _nothing(request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
    """What a thread that does not exist holds."""
    match request.WhichOneof("kind"):
        case "get":
            return store_pb2.StoreReply(found=store_pb2.Found())
        case "list":
            return store_pb2.StoreReply(listed=store_pb2.Listed())
        case _:
            return store_pb2.StoreReply(blobs=store_pb2.Blobs())
