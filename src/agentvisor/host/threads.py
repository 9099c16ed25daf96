"""The one door to threads: what HTTP, the command line and clients outside may ask of them.

Raises nothing but the errors of `agentvisor.core.errors`.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import time
from typing import Protocol
from uuid import uuid4

import structlog
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
    PermissionRefused,
    StateTooLarge,
    StorageUnavailable,
    Unavailable,
    ValueTooLarge,
)
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, RunId, ThreadId
from agentvisor.core.interrupts import Seen
from agentvisor.core.lifetimes import Lifetime
from agentvisor.core.owners import EVERYONE, Owner, keyword
from agentvisor.core.records import Blob
from agentvisor.core.runs import CancelAction, Run
from agentvisor.core.store import Store
from agentvisor.core.thread import STATE_VERSION, Settings, Thread, ThreadStatus
from agentvisor.host.blob_shelf import CORRUPT, TOO_LARGE, UNAVAILABLE, BlobShelf, part_of
from agentvisor.host.codec.reading import answered, check_readable
from agentvisor.host.codec.terms import SearchTerms
from agentvisor.host.external.places import folder_of
from agentvisor.host.external.storage import ExternalStorage, Patience
from agentvisor.host.threads_delete import Forget, delete_thread, erase_expired, nothing_beside
from agentvisor.host.threads_read import Listed, ThreadReader, unavailable
from agentvisor.host.workflow.refusals import refusal, was_dropped
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.interrupts import seen_to_message
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.reads import KEYWORDS, metadata_term
from agentvisor.protocol.threads import (
    lifetime_to_message,
    run_from_message,
    settings_to_message,
    thread_to_message,
)
from agentvisor.protocol.v1 import run_pb2, store_pb2, thread_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.threads")

_RPC_TIMEOUT = timedelta(seconds=10)
_UPDATE_TRIES = 5
_ANY_SIZE = 1 << 30
_POLL = 0.02
_POLL_MOST = 1.0
_LOOK = 0.2
"""Between looks at a run; of an end on this host its attempt tells at once, and each look costs a workflow task."""
_FILTER_VALUE = re.compile(r"[^'\"\\\x00-\x1f\ud800-\udfff]{0,200}")


@dataclass(frozen=True, slots=True)
class ThreadDefaults:
    """What the configuration says of new threads, and of sizes."""

    task_queue: str
    pending_writes_enabled: bool
    settings: Settings
    max_input: int
    max_value: int
    lifetime: Lifetime | None = None
    """Of those whose creator names none."""


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
        self._reader = ThreadReader(client)
        self._owner = EVERYONE
        self._waiting: dict[RunId, set[asyncio.Future[None]]] = {}

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

        One that exists already keeps its time to live.
        """
        existed = await self._start(thread_id, self._initial(thread_id, metadata, lifetime), exist_ok=exist_ok)
        try:
            return await self.get(thread_id)
        except NotFound:
            if existed:
                raise _exists(thread_id) from None
            raise

    async def create_from(self, thread: Thread) -> None:
        """Create a thread that begins with what another one holds, all at once; upkeep and pins are those of today."""
        defaults = self._defaults
        thread.settings, thread.pending_writes_enabled = defaults.settings, defaults.pending_writes_enabled
        thread.incarnation = uuid4().hex
        thread.owner = self._owner or thread.owner
        thread.lifetime = thread.lifetime or defaults.lifetime
        try:
            await self._own_objects(thread)
            await self._create(thread)
        except BaseException:
            if self._external is not None:
                folder = folder_of(thread.thread_id, thread.incarnation)
                self._external.begin(f"values of {thread.thread_id}", self._external.delete_below(folder))
            raise

    async def _own_objects(self, thread: Thread) -> None:
        """Give a copy objects of its own: neither thread's deletion harms the other."""
        shelf = self.shelf_of(thread.store)
        folder, names = folder_of(thread.thread_id, thread.incarnation), None
        for blob in [blob for blob in thread.store.blobs.values() if blob.is_external]:
            if self._external is None:
                raise StorageUnavailable(
                    "the thread to copy has values in external storage: set storage.url on this host"
                )
            names = names or self._external.names(folder)
            thread.store.blobs[blob.key] = await self._external.copied(blob, names.new(blob.key), shelf.verify)

    async def _create(self, thread: Thread) -> None:
        state, limit = thread_to_message(thread).SerializeToString(), self._defaults.settings.state_bytes
        if len(state) > limit:
            raise StateTooLarge(
                f"the copy would have {len(state)} bytes, the limit is {limit} (storage.max_state)",
                size=str(len(state)),
                limit=str(limit),
            )
        await self._start(thread.thread_id, state, exist_ok=False)

    async def _start(self, thread_id: ThreadId, state: bytes, *, exist_ok: bool) -> bool:
        """Whether the thread existed before."""
        try:
            await self._client.start_workflow(
                WORKFLOW,
                state,
                id=thread_id,
                task_queue=self._defaults.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=_RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError as error:
            if not exist_ok:
                raise _exists(thread_id) from error
            return True
        except RPCError as error:
            raise unavailable(thread_id, error) from error
        return False

    def _initial(self, thread_id: ThreadId, metadata: Mapping[str, object], lifetime: Lifetime | None) -> bytes:
        now = int(time() * 1000)
        return thread_pb2.Thread(
            version=STATE_VERSION,
            thread_id=thread_id,
            created_at_ms=now,
            updated_at_ms=now,
            state_updated_at_ms=now,
            config=run_pb2.PinnedConfig(pending_writes_enabled=self._defaults.pending_writes_enabled),
            metadata=metadata_to_struct(metadata),
            settings=settings_to_message(self._defaults.settings),
            incarnation=uuid4().hex,
            owner=self._owner,
            lifetime=lifetime_to_message(lifetime or self._defaults.lifetime),
            used_at_ms=now,
        ).SerializeToString()

    async def get(self, thread_id: ThreadId) -> Thread:
        """The thread with its runs and the head of every namespace."""
        return await self._reader.read(thread_id, thread_pb2.ReadThread(heads=True, whole_run_id=_NONE))

    async def version(self, thread_id: ThreadId) -> str:
        """Differs from an earlier one where the thread may have changed; costs no workflow task.

        Whose the thread is, is not known here: nothing may be told of it before a read has found it to be the caller's.
        """
        info = (await self._reader.describe(thread_id)).workflow_execution_info
        return f"{info.execution.run_id}:{info.history_length}"

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
            whole_run_id=_NONE,
        )
        return await self._reader.read(thread_id, asked)

    async def state(self, thread_id: ThreadId) -> Thread:
        """The thread with its state beside checkpoints, and without these."""
        asked = thread_pb2.ReadThread(without_checkpoints=True, thread_state=True, whole_run_id=_NONE)
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
            whole_run_id=_NONE,
        )
        return await self._reader.page(thread_id, question)

    def shelf_of(self, store: Store) -> BlobShelf:
        """The values of a store that holds all of them, whatever their size: limits may have been lowered since."""
        return BlobShelf(store, _nothing_more, max_value_bytes=_ANY_SIZE, external=self._external)

    async def blobs(
        self, thread_id: ThreadId, keys: Iterable[BlobKey], *, patience: Patience | None = None
    ) -> dict[BlobKey, tuple[str, bytes]]:
        """Decoded values: key to (serde type, bytes). Unknown keys are left out; what is damaged is `CORRUPT`.

        No more than about `storage.max_value` bytes in all: what is over that is of the type `TOO_LARGE`. With
        `patience`, what external storage does not give in that time is `UNAVAILABLE`, and no error.
        """
        wanted = list(dict.fromkeys(keys))
        store = Store()
        for blob in await self.stored_blobs(thread_id, wanted) if wanted else ():
            store.blobs[blob.key] = blob
        external = self._external if self._external is None or patience is None else self._external.within(patience)
        shelf = BlobShelf(store, _nothing_more, max_value_bytes=self._defaults.max_value, external=external)
        found: dict[BlobKey, tuple[str, bytes]] = {}
        left = self._defaults.max_value
        for key in wanted:
            blob = store.blobs.get(key)
            if blob is None:
                continue
            if blob.size > left and found:
                found[key] = (TOO_LARGE, str(blob.size).encode())
                continue
            left -= blob.size
            try:
                found[key] = (blob.type, await shelf.decoded(key))
            except Corrupt as error:
                log.error("value_corrupt", thread=thread_id, key=key.hex()[:16], error=error.message)  # noqa: TRY400
                found[key] = (CORRUPT, error.message.encode())
            except StorageUnavailable as error:
                if patience is None:
                    raise
                found[key] = (UNAVAILABLE, error.message.encode())
        return found

    async def stored_blobs(
        self,
        thread_id: ThreadId,
        keys: Iterable[BlobKey],
        *,
        have: frozenset[BlobKey] = frozenset(),
        enough: int | None = None,
    ) -> list[Blob]:
        """Blobs as they are stored, with what they are based on, bases first; `enough`: of about so many bytes."""
        wanted = [key for key in keys if key not in have]
        store = Store()
        for blob in await self._reader.blobs(thread_id, wanted, have=have, enough=enough):
            store.blobs[blob.key] = blob
        if enough is not None and sum(blob.stored_bytes for blob in store.blobs.values()) > enough:
            return store.chain(wanted, have=have)
        if any(key not in store.blobs for key in wanted):
            # Not in the workflow's state yet: the live attempt's log has them, their bases may be in either.
            asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=_NONE)
            logged = (await self._reader.read(thread_id, asked)).store.blobs
            bases = [blob.base for blob in logged.values() if blob.base is not None and blob.base not in logged]
            for blob in [*await self._reader.blobs(thread_id, [*wanted, *bases], have=have), *logged.values()]:
                store.blobs.setdefault(blob.key, blob)
        return store.chain(wanted, have=have)

    async def storage(self, thread_id: ThreadId) -> thread_pb2.ReadStorageReply:
        """How much the thread holds, and how much of it is kept in its workflow's history."""
        return await self._reader.storage(thread_id)

    async def part(self, thread_id: ThreadId, key: BlobKey, offset: int, length: int) -> bytes:
        """A part of a stored blob's data; empty at its end, `Corrupt` where the thread has no such blob."""
        blob = next((one for one in await self.stored_blobs(thread_id, [key]) if one.key == key), None)
        if blob is None:
            raise Corrupt(f"thread {thread_id} has no value {key.hex()[:16]}")
        return await part_of(blob, offset, length, self._external)

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
        terms = self._ours()
        if status is not None:
            terms.append(f"AgentVisorStatus = '{_plain(status)}'")
        if agent is not None:
            terms.append(f"AgentVisorAgent = '{_plain(agent)}'")
        if ids is not None:
            terms.append(f"WorkflowId IN ({', '.join(repr(str(one)) for one in ids) or repr('')})")
        if len(metadata) > KEYWORDS:
            raise InvalidInput(f"{len(metadata)} metadata keys: {KEYWORDS} can be searched at most", field="metadata")
        terms += [self._terms.asked("AgentVisorMetadata", _term(key, value)) for key, value in metadata.items()]
        return [one for one, _ in await self._listed(terms, limit + offset)][offset:]

    async def interrupted(self, until: datetime | None, limit: int) -> list[tuple[ThreadId, datetime]]:
        """Threads that wait for an answer, the newest first, each with when its execution began: not after `until`.

        As Temporal's visibility has it, which lags by milliseconds; a compaction makes a thread the newest.
        """
        terms = [*self._ours(), f"AgentVisorStatus = '{ThreadStatus.INTERRUPTED.value}'"]
        if until is not None:
            terms.append(f"StartTime <= '{until.isoformat()}'")
        return await self._listed(terms, limit)

    def _ours(self) -> list[str]:
        # Threads of other deployments on the same Temporal are not ours to answer for.
        queue = _plain(self._defaults.task_queue)
        terms = [f"WorkflowType = '{WORKFLOW}'", "ExecutionStatus = 'Running'", f"TaskQueue = '{queue}'"]
        if self._owner != EVERYONE:
            terms.append(self._terms.asked("AgentVisorOwner", keyword(self._owner)))
        return terms

    async def _listed(self, terms: Sequence[str], limit: int) -> list[tuple[ThreadId, datetime]]:
        try:
            listed = self._client.list_workflows(" AND ".join(terms), limit=limit)
            return [(ThreadId(one.id), one.start_time) async for one in listed]
        except RPCError as error:
            raise Unavailable(f"Temporal could not list threads ({error.status.name}): {error.message}") from error

    async def busy(self, ids: Sequence[ThreadId]) -> list[ThreadId]:
        """Those of the threads on which a run is active, by Temporal's visibility."""
        return await self.search(metadata={}, status="busy", ids=ids, limit=len(ids), offset=0)

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
        start = None
        if create:
            start = self._initial(thread_id, thread_metadata, lifetime)
        # A refused update is answered with its refusal again: another look at the thread is another update.
        update_id = spec.run_id if seen is None else f"{spec.run_id}:{uuid4().hex[:8]}"
        reply = await self._update(thread_id, "start_run", request, update_id=update_id, start=start)
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
            raise _no_run(thread_id, run_id)
        return run

    async def wait_run(self, thread_id: ThreadId, run_id: RunId, seen: Callable[[Run], None] = lambda _: None) -> Run:
        """The run once it has ended, however long that takes; an outage of Temporal is waited out.

        `seen` is told of each look at it, without its input and output.
        """

        async def has_ended() -> bool:
            run = await self._glance(thread_id, run_id)
            if run is None or run.rolled_back:
                await self._reader.describe(thread_id)  # or is it the thread that is gone?
                raise _no_run(thread_id, run_id)
            seen(run)
            return run.status.terminal

        await self._until(run_id, has_ended)
        return await self.get_run(thread_id, run_id)

    async def until_gone(self, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once nothing is left of a run that is rolled back; `Conflict` where that could not be done."""

        async def is_gone() -> bool:
            run = await self._glance(thread_id, run_id)
            if run is not None and not run.rolled_back:
                raise Conflict(run.error_message or f"run {run_id} is not rolled back", run_id=run_id)
            return run is None

        await self._until(run_id, is_gone)

    async def until_told(self, thread_id: ThreadId, run_id: RunId) -> None:
        """Return once the run has ended and its webhook, where it has one, has heard of that or was given up."""

        async def is_told() -> bool:
            thread = await self._sketch(thread_id)
            run = thread.runs.get(run_id)
            return run_id not in thread.notices and (run is None or run.status.terminal)

        await self._until(run_id, is_told)

    async def _until(self, run_id: RunId, holds: Callable[[], Awaitable[bool]]) -> None:
        """Look again and again: at once where an attempt has ended here, else after a while."""
        pause = _LOOK
        while True:
            # Before the look: an end that comes after it must not be missed.
            hint: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(run_id, set())
            waiting.add(hint)
            try:
                if await holds():
                    return
                done, _ = await asyncio.wait([hint], timeout=pause)
                pause = _LOOK if done else min(pause * 1.5, _POLL_MOST)
            except Unavailable:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _POLL_MOST)
            finally:
                waiting.discard(hint)
                if not waiting:
                    self._waiting.pop(run_id, None)

    async def _glance(self, thread_id: ThreadId, run_id: RunId) -> Run | None:
        """The run without its input and output; None where the thread has none of that id."""
        return (await self._sketch(thread_id)).runs.get(run_id)

    async def _sketch(self, thread_id: ThreadId) -> Thread:
        """The thread without its checkpoints, and its runs without their inputs."""
        asked = thread_pb2.ReadThread(without_checkpoints=True, whole_run_id=_NONE)
        return await self._reader.state(thread_id, asked)

    def attempt_ended(self, run_id: RunId) -> None:
        """A hint from this host's attempts: waiting for the run is worth a look."""
        for hint in self._waiting.get(run_id, ()):
            if not hint.done():
                hint.set_result(None)

    # --- Temporal --------------------------------------------------------------------------------------------------

    async def _update(
        self,
        thread_id: ThreadId,
        name: str,
        request: _Request,
        *,
        update_id: str | None = None,
        start: bytes | None = None,
    ) -> bytes:
        """Send an update and wait for its answer; one that met continue-as-new is sent again under the same id."""
        request.owner = self._owner
        argument = request.SerializeToString()
        failed: Exception | None = None
        for attempt in range(_UPDATE_TRIES):
            try:
                call = self._update_once(thread_id, name, argument, update_id, start)
                return await answered(self._client, thread_id, call)
            except WorkflowUpdateFailedError as error:
                if not was_dropped(error.cause):
                    raise refusal(error.cause) from error
                failed = error
            except WorkflowUpdateRPCTimeoutOrCancelledError as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError from error  # the SDK hides that it was this task that was cancelled
                failed = error
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND and start is None:
                    raise NotFound(f"thread {thread_id} does not exist", thread_id=thread_id) from error
                failed = error
            await check_readable(self._client, thread_id)
            await asyncio.sleep(_POLL * 2**attempt)
        raise Unavailable(f"thread {thread_id} did not answer {name}: {failed}") from failed

    async def _update_once(
        self, thread_id: ThreadId, name: str, argument: bytes, update_id: str | None, start: bytes | None
    ) -> bytes:
        if start is None:
            handle: WorkflowHandle[object, object] = self._client.get_workflow_handle(thread_id)
            return await handle.execute_update(  # pyright: ignore[reportUnknownMemberType] - Temporal's signature
                name, argument, id=update_id, result_type=bytes, rpc_timeout=_RPC_TIMEOUT
            )
        operation = WithStartWorkflowOperation[object, object](
            WORKFLOW,
            start,
            id=thread_id,
            task_queue=self._defaults.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        return await self._client.execute_update_with_start_workflow(  # pyright: ignore[reportUnknownMemberType] - the same
            name,
            argument,
            start_workflow_operation=operation,
            id=update_id,
            result_type=bytes,
            rpc_timeout=_RPC_TIMEOUT,
        )


async def _nothing_more(_keys: list[BlobKey]) -> list[Blob]:
    return []


def _no_run(thread_id: ThreadId, run_id: RunId) -> NotFound:
    return NotFound(f"thread {thread_id} has no run {run_id}", run_id=run_id)


def _exists(thread_id: ThreadId) -> Conflict:
    return Conflict(f"thread {thread_id} exists already", thread_id=thread_id)


_NONE = "-"
"""Names no run: every run comes without its input and output."""


def _term(key: str, value: str | float | bool) -> str:  # noqa: FBT001 - a value of JSON
    term = metadata_term(key, value)
    if term is None:
        raise InvalidInput(f"metadata {key[:80]!r} cannot be searched: it is too long for the index", field=key)
    return _plain(term)


def _plain(text: str) -> str:
    if not _FILTER_VALUE.fullmatch(text):
        raise InvalidInput(
            f"{text[:80]!r} cannot be searched: no quotes, backslashes or control characters, 200 at most"
        )
    return text
