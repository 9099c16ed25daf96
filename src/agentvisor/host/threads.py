"""The one door to threads: what HTTP, the command line and clients outside may ask of them.

Raises nothing but the errors of `agentvisor.core.errors`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import uuid4

import structlog
from temporalio.client import Client

from agentvisor.core.errors import NotFound, PermissionRefused, ValueTooLarge
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.interrupts import Seen
from agentvisor.core.lifetimes import Lifetime
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.records import Blob
from agentvisor.core.runs import CancelAction, Run
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.external.storage import ExternalStorage, Patience
from agentvisor.host.run_waits import RunWaits, no_run
from agentvisor.host.temporal_calls import Start, thread_calls
from agentvisor.host.threads_delete import Forget, delete_thread, erase_expired, nothing_beside
from agentvisor.host.threads_new import NewThreads, ThreadDefaults, exists
from agentvisor.host.threads_read import NO_RUN, Listed, ThreadReader
from agentvisor.host.threads_search import ThreadSearch
from agentvisor.host.threads_values import ThreadValues
from agentvisor.host.tracing.place import mark
from agentvisor.protocol.interrupts import seen_to_message
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.threads import lifetime_to_message, run_from_message, settings_to_message, thread_from_message
from agentvisor.protocol.v1 import run_pb2, store_pb2, thread_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.threads")


class _Request(Protocol):
    """The argument of an update: it says for whom it is sent, and the thread's workflow refuses others' threads."""

    owner: str

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's own name


class Threads:
    """Threads of one Temporal namespace and task queue; holds nothing that matters.

    The operator's door, as it is made; `of` gives an owner's.
    """

    def __init__(
        self,
        client: Client,
        defaults: ThreadDefaults,
        external: ExternalStorage | None = None,
        forget: Forget = nothing_beside,
        terms: SearchTerms | None = None,
    ) -> None:
        """`forget`: removes what belongs to a thread and is kept beside it, before the thread itself.

        `terms`: how owners and metadata stand in Temporal's index; as they are, where nothing is said.
        """
        self._client = client
        self._defaults = defaults
        self._external = external
        self._forget = forget
        self._terms = terms or SearchTerms()
        self._calls = thread_calls(client)
        self._waits = RunWaits()
        self._bind(EVERYONE)

    def of(self, owner: Owner) -> Threads:
        """The same door for one owner: what is created is theirs, and other owners' threads do not exist.

        Nothing leads back: an owner's door gives no other owner's, nor the operator's.
        """
        if self._owner not in (EVERYONE, owner):
            raise PermissionRefused("this door is one owner's, and gives nobody else's")
        own = copy.copy(self)
        own._bind(owner)  # noqa: SLF001 - it is of this class
        return own

    def _bind(self, owner: Owner) -> None:
        self._owner, self._reader = owner, ThreadReader(self._client, owner)
        self._values = ThreadValues(self._reader, self._external, self._defaults.max_value)
        self._new = NewThreads(self._client, self._defaults, self._values, owner)
        self._search = ThreadSearch(self._client, self._defaults.task_queue, owner, self._terms)

    @property
    def external(self) -> ExternalStorage | None:
        """Where large values are, if anywhere."""
        return self._external

    # --- threads ---------------------------------------------------------------------------------------------------

    async def create(
        self,
        thread_id: ThreadId,
        metadata: Mapping[str, object],
        *,
        exist_ok: bool,
        lifetime: Lifetime | None = None,
    ) -> Thread:
        """Create a thread. `Conflict` where it exists, unless that is fine; always where it is another owner's.

        One that exists already keeps its time to live. One whose own was over at once is told as it began.
        """
        beginning = self._new.beginning(thread_id, metadata, lifetime)
        existed = await self._new.begin(thread_id, beginning, exist_ok=exist_ok)
        try:
            return await self.get(thread_id)
        except NotFound:
            if existed:
                raise exists(thread_id) from None
            return thread_from_message(thread_pb2.Thread.FromString(beginning.state))

    async def create_from(self, thread: Thread) -> None:
        """Create a thread that begins with what another one holds, all at once; upkeep and pins are those of today."""
        await self._new.begin_from(thread)

    async def create_imported(self, thread: Thread) -> None:
        """Create a thread that came in a file, all at once, for the caller; its objects are in its folder already."""
        await self._new.begin_imported(thread)

    async def get(self, thread_id: ThreadId) -> Thread:
        """The thread with its runs and the head of every namespace."""
        return await self._reader.read(thread_id, thread_pb2.ReadThread(heads=True, whole_run_id=NO_RUN))

    async def version(self, thread_id: ThreadId) -> str:
        """Differs from an earlier one where the thread may have changed; costs no workflow task.

        Whose the thread is, is not known here: nothing may be told of it before a read has found it to be the caller's.
        """
        info = (await self._reader.describe(thread_id)).workflow_execution_info
        return f"{info.execution.run_id}:{info.history_length}"

    async def began_ms(self, thread_id: ThreadId) -> int:
        """When its current execution began. As of `version`, whose it is is not known here."""
        info = (await self._reader.describe(thread_id)).workflow_execution_info
        return info.start_time.ToMilliseconds()

    async def read(
        self,
        thread_id: ThreadId,
        *,
        namespace: Namespace | None = None,
        checkpoint_id: CheckpointId | None = None,
        before: CheckpointId | None = None,
        newest: int = 0,
        saves: bool | None = None,
    ) -> Thread:
        """The thread with the selected checkpoints; what a live attempt has just logged may come on top of those."""
        asked = thread_pb2.ReadThread(
            namespace=namespace,
            checkpoint_id=checkpoint_id or "",
            before=before or "",
            newest=newest,
            saves=saves,
            whole_run_id=NO_RUN,
        )
        return await self._reader.read(thread_id, asked)

    async def whole(self, thread_id: ThreadId) -> Thread:
        """The thread with everything but values: every run with its input and output.

        `Unavailable` where a worker of an older version has it and does not tell all of its runs.
        """
        asked = thread_pb2.ReadThread(thread_state=True, whole_run_id=NO_RUN, runs=thread_pb2.RUNS_ASKED_WHOLE)
        return await self._reader.read(thread_id, asked)

    async def state(self, thread_id: ThreadId) -> Thread:
        """The thread with its state beside checkpoints, and without these."""
        asked = thread_pb2.ReadThread(without_checkpoints=True, thread_state=True, whole_run_id=NO_RUN)
        return await self._reader.read(thread_id, asked)

    async def page(self, thread_id: ThreadId, asked: store_pb2.ListCheckpoints, most: int) -> Listed:
        """Of a list that is asked for, the `most` next checkpoints, and what a live attempt has just logged."""
        page = thread_pb2.ListPage(most=most, after_id=asked.after_id, after_namespace=asked.after_namespace)
        question = thread_pb2.ReadThread(
            namespace=asked.namespace if asked.HasField("namespace") else None,
            checkpoint_id=asked.checkpoint_id,
            before=asked.before,
            page=page,
            saves=asked.saves,
            whole_run_id=NO_RUN,
        )
        return await self._reader.page(thread_id, question)

    def shelf_of(self, store: Store) -> BlobShelf:
        """The values of a store that holds all of them, whatever their size: limits may have been lowered since."""
        return self._values.shelf_of(store)

    async def blobs(
        self, thread_id: ThreadId, keys: Iterable[BlobKey], *, patience: Patience | None = None
    ) -> dict[BlobKey, tuple[str, bytes]]:
        """Decoded values: key to (serde type, bytes). Unknown keys are left out; what is damaged is `CORRUPT`.

        No more than about `storage.max_value` bytes in all: what is over that is of the type `TOO_LARGE`. With
        `patience`, what external storage does not give in that time is `UNAVAILABLE`, and no error.
        """
        return await self._values.decoded(thread_id, keys, patience=patience)

    async def stored_blobs(
        self,
        thread_id: ThreadId,
        keys: Iterable[BlobKey],
        *,
        have: frozenset[BlobKey] = frozenset(),
        enough: int | None = None,
    ) -> list[Blob]:
        """Blobs as they are stored, with what they are based on, bases first; `enough`: of about so many bytes."""
        return await self._values.stored(thread_id, keys, have=have, enough=enough)

    async def part(self, thread_id: ThreadId, key: BlobKey, offset: int, length: int) -> bytes:
        """A part of a stored blob's data; empty at its end, `Corrupt` where the thread has no such blob."""
        return await self._values.part(thread_id, key, offset, length)

    async def storage(self, thread_id: ThreadId) -> thread_pb2.ReadStorageReply:
        """How much the thread holds, and how much of it is kept in its workflow's history."""
        return await self._reader.storage(thread_id)

    async def update_metadata(self, thread_id: ThreadId, metadata: Mapping[str, object]) -> Thread:
        """Set these keys of the thread's metadata, leave the others."""
        return await self._change(thread_id, run_pb2.UpdateThread(metadata=metadata_to_struct(metadata)))

    async def set_lifetime(
        self, thread_id: ThreadId, lifetime: Lifetime | None, metadata: Mapping[str, object]
    ) -> Thread:
        """Give the thread another time to live, or none, from now on; with `update_metadata` in one."""
        request = run_pb2.UpdateThread(
            metadata=metadata_to_struct(metadata),
            lifetime=lifetime_to_message(lifetime),
            without_lifetime=lifetime is None,
        )
        return await self._change(thread_id, request)

    async def _change(self, thread_id: ThreadId, request: run_pb2.UpdateThread) -> Thread:
        await self._update(thread_id, "update_thread", request)
        return await self.get(thread_id)

    async def delete(self, thread_id: ThreadId) -> None:
        """Remove the thread from Temporal, every execution of it; a live attempt is fenced by that.

        `NotFound` where there is none; a delete that was cut off is finished by another all the same.
        """
        await delete_thread(self._client, thread_id, self._external, self._owner, self._forget)

    async def erase_expired(self, thread_id: ThreadId, execution: str, owner: Owner) -> None:
        """Remove the thread whose execution asks for that, for its time to live is over; it may be gone by now."""
        await self._forget(thread_id, owner)
        await erase_expired(self._client, thread_id, execution, self._external)

    async def search(
        self,
        *,
        metadata: Mapping[str, str | float | bool],
        status: str | None,
        ids: Sequence[ThreadId] | None,
        limit: int,
        offset: int,
        agent: str | None = None,
    ) -> list[ThreadId]:
        """Thread ids by Temporal's visibility, newest first; it lags by milliseconds.

        `InvalidInput` for metadata that is too long for the index.
        """
        return await self._search.search(
            metadata=metadata, status=status, ids=ids, limit=limit, offset=offset, agent=agent
        )

    async def busy(self, ids: Sequence[ThreadId]) -> list[ThreadId]:
        """Those of the threads on which a run is active, by Temporal's visibility."""
        return await self.search(metadata={}, status="busy", ids=ids, limit=len(ids), offset=0)

    async def interrupted(self, until: datetime | None, limit: int) -> list[tuple[ThreadId, datetime]]:
        """Threads that wait for an answer, the newest first, each with when its execution began: not after `until`.

        As Temporal's visibility has it, which lags by milliseconds; a compaction makes a thread the newest.
        """
        return await self._search.interrupted(until, limit)

    async def count(self, status: ThreadStatus) -> int:
        """How many threads have a status, by Temporal's visibility. `Unavailable`."""
        return await self._search.count(status)

    # --- runs ------------------------------------------------------------------------------------------------------

    async def start_run(
        self,
        thread_id: ThreadId,
        spec: run_pb2.RunSpec,
        *,
        create: bool,
        thread_metadata: Mapping[str, object],
        seen: Seen | None = None,
        lifetime: Lifetime | None = None,
    ) -> Run:
        """Record a run, durably; with `create` also its thread. Starting the same run id again changes nothing.

        `seen`: what the caller saw of interrupts; `Conflict` with the detail `changed` where that is out of date.
        `lifetime`: of the thread, where it is created.
        """
        mark(spec)
        body = spec.SerializeToString()
        if len(body) > self._defaults.max_input:
            raise ValueTooLarge(
                f"the run's input has {len(body)} bytes, the limit is {self._defaults.max_input} (storage.max_input): "
                "pass references to large data",
                limit=str(self._defaults.max_input),
            )
        settings = settings_to_message(self._defaults.settings)
        request = run_pb2.StartRun(spec=spec, settings=settings)
        if seen is not None:
            request.seen.CopyFrom(seen_to_message(seen))
        start = self._new.beginning(thread_id, thread_metadata, lifetime) if create else None
        # A refused update is answered with its refusal again: another look at the thread is another update.
        update_id = spec.run_id if seen is None else f"{spec.run_id}:{uuid4().hex[:8]}"
        reply = await self._update(thread_id, "start_run", request, update_id=update_id, start=start)
        if spec.kind == run_pb2.RUN_KIND_AGENT:
            log.info("run_accepted", thread=thread_id, run=spec.run_id, agent=spec.agent)
        return run_from_message(run_pb2.StartRunReply.FromString(reply).run)

    async def cancel_run(
        self, thread_id: ThreadId, run_id: RunId, action: CancelAction = CancelAction.INTERRUPT
    ) -> Run:
        """Accept a cancel, durably: no attempt starts after it. `NotFound` for an unknown or finished run.

        With the action `ROLLBACK` or `DELETE` readers see it no more; `until_gone` waits until nothing of it is left.
        `Conflict` where it cannot be rolled back.
        """
        request = run_pb2.CancelRun(run_id=run_id, action=run_pb2.CancelAction.ValueType(action))
        return run_from_message(run_pb2.Run.FromString(await self._update(thread_id, "cancel_run", request)))

    async def close_interrupts(self, thread_id: ThreadId) -> None:
        """Give up all that waits. `Conflict` while a run is active."""
        await self._update(thread_id, "close_interrupts", run_pb2.CloseInterrupts())

    async def get_run(self, thread_id: ThreadId, run_id: RunId) -> Run:
        """The run with its input and output."""
        asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=run_id)
        # With the log: where a run is, and since when, is there only until it is folded.
        run = (await self._reader.read(thread_id, asked)).runs.get(run_id)
        if run is None or run.rolled_back:
            raise no_run(thread_id, run_id)
        return run

    async def runs(self, thread_id: ThreadId) -> list[Run]:
        """Every run that the thread keeps, the oldest first, without inputs and outputs."""
        asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=NO_RUN, runs=thread_pb2.RUNS_ASKED_EVERY)
        return list((await self._reader.read(thread_id, asked)).runs.values())

    async def wait_run(self, thread_id: ThreadId, run_id: RunId, seen: Callable[[Run], None] = lambda _: None) -> Run:
        """The run once it has ended, however long that takes; an outage of Temporal is waited out.

        `seen` is told of each look at it, without its input and output.
        """
        await self._waits.until_ended(self._reader, thread_id, run_id, seen)
        return await self.get_run(thread_id, run_id)

    async def until_gone(self, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once nothing is left of a run that is rolled back; `Conflict` where that could not be done."""
        await self._waits.until_gone(self._reader, thread_id, run_id)

    async def until_told(self, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once the run has ended and its webhook, where it has one, has heard of that or was given up."""
        await self._waits.until_told(self._reader, thread_id, run_id)

    def attempt_ended(self, run_id: RunId) -> None:
        """A hint from this host's attempts: waiting for the run is worth a look."""
        self._waits.attempt_ended(run_id)

    async def _update(
        self,
        thread_id: ThreadId,
        name: str,
        request: _Request,
        *,
        update_id: str | None = None,
        start: Start | None = None,
    ) -> bytes:
        request.owner = self._owner
        return await self._calls.update(thread_id, name, request.SerializeToString(), update_id=update_id, start=start)
