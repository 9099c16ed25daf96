"""Clients outside any guest: reads merge like any reader's, writes go through an attempt held for them here."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from agentvisor.core import ids
from agentvisor.core.errors import Conflict, Fenced, InvalidInput, NotFound, Unavailable
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.owners import EVERYONE, Owner, may_touch, missing_thread
from agentvisor.core.runs import RunKind
from agentvisor.host.door import StoreLimits
from agentvisor.host.live_attempt import LiveAttempt, answered
from agentvisor.host.outside_reads import OutsideReads
from agentvisor.host.rehearsal import rehearse
from agentvisor.host.run_activity import Attempts
from agentvisor.host.store_replies import keeps_latest
from agentvisor.host.threads import Threads
from agentvisor.host.threads_copy import check_free, put_copy, read_whole
from agentvisor.protocol.v1 import run_pb2, store_pb2

Done = TypeVar("Done")

_OPEN_SECONDS = 10.0
_TRIES = 3


class Sessions:
    """One session a thread, opened by the first write and closed by silence.

    As it is made it serves the operator; `of` gives an owner's.
    """

    def __init__(
        self,
        threads: Threads,
        attempts: Attempts,
        limits: StoreLimits | None,
        *,
        own_queue: str,
        heartbeat_timeout_ms: int,
        timeout_ms: int,
    ) -> None:
        self._threads = threads
        self._owner = EVERYONE
        self._attempts = attempts
        self._limits = limits
        self._own_queue = own_queue
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._timeout_ms = timeout_ms
        # Another host's session may be in the way until it is idle, or until the loss of that host is noticed.
        self._open_seconds = _OPEN_SECONDS + heartbeat_timeout_ms / 1000
        # Neither keeps entries of threads that nobody works with: they come and go by the thousand.
        self._sessions: dict[ThreadId, RunId] = {}
        self._opening: WeakValueDictionary[ThreadId, asyncio.Lock] = WeakValueDictionary()
        self._reads = OutsideReads(threads, self._held_here)

    def of(self, owner: Owner) -> Sessions:
        """The same sessions for one owner: other owners' threads do not exist."""
        own = copy.copy(self)
        own._bind(owner)  # noqa: SLF001 - it is of this class
        return own

    def _bind(self, owner: Owner) -> None:
        self._owner, self._threads = owner, self._threads.of(owner)
        self._reads = OutsideReads(self._threads, self._held_here)

    def _held_here(self) -> list[ThreadId]:
        return [*self._sessions]

    async def call(self, thread_id: ThreadId | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        """Answer one request of a client outside."""
        return await answered(self._call(thread_id, request))

    async def _call(self, thread_id: ThreadId | None, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        kind = request.WhichOneof("kind")
        if kind == "list" and request.list.all_threads:
            return await self._reads.list_all(request.list)
        if kind == "delete_for_runs":
            return await self._delete_for_runs(thread_id, request)
        if thread_id is None:
            raise InvalidInput('name the thread: config={"configurable": {"thread_id": ...}}', field="thread_id")
        match kind:
            case "get" | "list" | "get_blobs" | "get_part" | "delta_history" | "get_thread_state" | "list_thread_state":
                live = self._live(thread_id)
                if live is not None and live.store.done() and live.store.exception() is None:
                    live.session_calls += 1
                    return await live.serve(request)
                return await self._reads.answer(thread_id, request)
            case "put" | "put_writes" | "put_part" | "project" | "change_thread_state":
                return await self._write(thread_id, request)
            case "prune":
                return await self._prune(thread_id, request)
            case "copy_thread":
                return await self._copy(thread_id, ids.thread_id(request.copy_thread.target_thread_id))
            case "delete_thread":
                return await self._delete(thread_id)
            case "effect" | "question":
                raise InvalidInput("agentvisor.once and agentvisor.interrupt work inside a run")
            case _:
                raise InvalidInput(f"this host does not know the request {kind}: it may be older than the SDK")

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _write(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        if request.change_thread_state.delete and self._live(thread_id) is None and not await self._exists(thread_id):
            return store_pb2.StoreReply(thread_state_changed=store_pb2.ThreadStateChanged())  # there is nothing
        limits = self._limits  # with external storage, what is too large for the thread has another place
        if limits is not None and self._live(thread_id) is None and not await self._exists(thread_id):
            await rehearse(thread_id, request, limits)
        return await self._held(thread_id, lambda live: live.serve(request))

    async def _held(self, thread_id: ThreadId, work: Callable[[LiveAttempt], Awaitable[Done]]) -> Done:
        """Do it in the thread's session; where that ends meanwhile, in another (what is sent twice counts once)."""
        failed: Exception | None = None
        for _ in range(_TRIES):
            live = await self._session(thread_id)
            try:
                await asyncio.shield(live.store)
                if not may_touch(self._owner, live.owner):
                    raise missing_thread(thread_id)
                live.session_calls += 1
                return await work(live)
            except (Fenced, Unavailable) as error:
                failed = error
        raise Unavailable(f"thread {thread_id} could not be held for writing: try again") from failed

    async def _prune(self, thread_id: ThreadId, request: store_pb2.StoreRequest) -> store_pb2.StoreReply:
        keeps_latest(request.prune)  # before anything is looked at
        try:
            await self._threads.get(thread_id)
        except NotFound:
            return store_pb2.StoreReply(stored=store_pb2.Stored())
        return await self._write(thread_id, request)

    async def prune(self, thread_id: ThreadId) -> None:
        """Keep the newest checkpoint of every namespace of a thread. `NotFound`; `Conflict` while a run is active."""
        await self._threads.get(thread_id)
        request = store_pb2.StoreRequest(prune=store_pb2.PruneThread(strategy="keep_latest"))
        await self._held(thread_id, lambda live: live.serve(request))

    async def _delete_for_runs(
        self, thread_id: ThreadId | None, request: store_pb2.StoreRequest
    ) -> store_pb2.StoreReply:
        """In that thread, or in all: the records tell which have anything of these runs."""
        wanted = frozenset(request.delete_for_runs.run_ids)
        async for thread in self._reads.all_threads(thread_id):
            if any(one.run_id in wanted for one in thread.store.all_checkpoints()):
                await self._write(thread.thread_id, request)
        return store_pb2.StoreReply(stored=store_pb2.Stored())

    async def _copy(self, source_id: ThreadId, target_id: ThreadId) -> store_pb2.StoreReply:
        """Everything of a thread into one that holds no checkpoints. `NotFound`, `Conflict`."""
        source = await read_whole(self._threads, source_id)

        async def work(live: LiveAttempt) -> None:
            target = live.store.result()
            check_free(target, target_id, source)
            async for _ in put_copy(self._threads, source, target):
                live.session_calls += 1

        await self._held(target_id, work)
        return store_pb2.StoreReply(stored=store_pb2.Stored())

    async def _exists(self, thread_id: ThreadId) -> bool:
        try:
            await self._threads.get(thread_id)
        except NotFound:
            return False
        return True

    def _live(self, thread_id: ThreadId) -> LiveAttempt | None:
        run_id = self._sessions.get(thread_id)
        live = None if run_id is None else self._attempts.session(run_id)
        if live is None or live.journal.is_closing:
            return None
        # Whose the thread is, is known with its store: until then, whoever asks waits for that (`_held`).
        return live if not live.store.done() or may_touch(self._owner, live.owner) else None

    async def _session(self, thread_id: ThreadId) -> LiveAttempt:
        """The thread's session, opened where there is none. `Conflict` while a run is active."""
        lock = self._opening.get(thread_id)
        if lock is None:
            lock = self._opening[thread_id] = asyncio.Lock()
        async with lock:
            live = self._live(thread_id)
            if live is not None:
                return live
            if self._attempts.stopping:
                raise Unavailable(f"this host is stopping and writes thread {thread_id} no more: ask another")
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
            for one in [one for one, opened in self._sessions.items() if self._attempts.session(opened) is None]:
                del self._sessions[one]
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
        if live is not None and may_touch(self._owner, live.owner):
            live.journal.fence()
            self._sessions.pop(thread_id, None)
        return store_pb2.StoreReply(stored=store_pb2.Stored())
