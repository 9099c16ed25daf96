"""How threads begin: with nothing, or with what another one holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import time
from uuid import uuid4

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from agentvisor.core.errors import Conflict, StateTooLarge, StorageUnavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.lifetimes import Lifetime
from agentvisor.core.owners import Owner
from agentvisor.core.room import check_metadata
from agentvisor.core.thread import STATE_VERSION, Settings, Thread
from agentvisor.host.external.places import folder_of
from agentvisor.host.temporal_calls import Start
from agentvisor.host.threads_read import unavailable
from agentvisor.host.threads_values import ThreadValues
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.threads import lifetime_to_message, settings_to_message, thread_to_message
from agentvisor.protocol.v1 import run_pb2, thread_pb2

_RPC_TIMEOUT = timedelta(seconds=10)


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


@dataclass(frozen=True, slots=True)
class NewThreads:
    """Threads that one caller begins: they are theirs."""

    client: Client
    defaults: ThreadDefaults
    values: ThreadValues
    owner: Owner

    def beginning(self, thread_id: ThreadId, metadata: Mapping[str, object], lifetime: Lifetime | None) -> Start:
        """How the thread begins where there is none; without a `lifetime`, with the usual one. `StateTooLarge`."""
        now, described = int(time() * 1000), metadata_to_struct(metadata)
        check_metadata(thread_id, 0, described.ByteSize(), 0, self.defaults.settings.state_bytes)
        state = thread_pb2.Thread(
            version=STATE_VERSION,
            thread_id=thread_id,
            created_at_ms=now,
            updated_at_ms=now,
            state_updated_at_ms=now,
            config=run_pb2.PinnedConfig(pending_writes_enabled=self.defaults.pending_writes_enabled),
            metadata=described,
            settings=settings_to_message(self.defaults.settings),
            incarnation=uuid4().hex,
            owner=self.owner,
            lifetime=lifetime_to_message(lifetime or self.defaults.lifetime),
            used_at_ms=now,
        )
        return Start(WORKFLOW, state.SerializeToString(), self.defaults.task_queue)

    async def begin(self, thread_id: ThreadId, beginning: Start, *, exist_ok: bool) -> bool:
        """Whether the thread existed before; `Conflict` where that is not fine."""
        try:
            await self.client.start_workflow(
                beginning.workflow,
                beginning.state,
                id=thread_id,
                task_queue=beginning.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=_RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError as error:
            if not exist_ok:
                raise exists(thread_id) from error
            return True
        except RPCError as error:
            raise unavailable(thread_id, error) from error
        return False

    async def begin_from(self, thread: Thread) -> None:
        """Create a thread that begins with what another one holds, all at once; upkeep and pins are those of today."""
        defaults = self.defaults
        thread.settings, thread.pending_writes_enabled = defaults.settings, defaults.pending_writes_enabled
        thread.incarnation = uuid4().hex
        thread.owner = self.owner or thread.owner
        thread.lifetime = thread.lifetime or defaults.lifetime
        try:
            await self._own_objects(thread)
            await self._create(thread)
        except BaseException:
            if self.values.external is not None:
                folder = folder_of(thread.thread_id, thread.incarnation)
                self.values.external.begin(f"values of {thread.thread_id}", self.values.external.delete_below(folder))
            raise

    async def begin_imported(self, thread: Thread) -> None:
        """Create a thread that came in a file; its objects are in its folder already.

        It keeps what was pinned for it; upkeep is that of today. `Unavailable` leaves open whether it is there.
        """
        thread.settings, thread.owner = self.defaults.settings, self.owner
        thread.lifetime = thread.lifetime or self.defaults.lifetime
        await self._create(thread)

    async def _own_objects(self, thread: Thread) -> None:
        """Give a copy objects of its own: neither thread's deletion harms the other."""
        folder, names = folder_of(thread.thread_id, thread.incarnation), None
        shelf = self.values.shelf_of(thread.store)
        for blob in [blob for blob in thread.store.blobs.values() if blob.is_external]:
            if self.values.external is None:
                raise StorageUnavailable(
                    "the thread to copy has values in external storage: set storage.url on this host"
                )
            names = names or self.values.external.names(folder)
            thread.store.blobs[blob.key] = await self.values.external.copied(blob, names.new(blob.key), shelf.verify)

    async def _create(self, thread: Thread) -> None:
        state, limit = thread_to_message(thread).SerializeToString(), self.defaults.settings.state_bytes
        if len(state) > limit:
            raise StateTooLarge(
                f"thread {thread.thread_id} would have {len(state)} bytes, the limit is {limit} (storage.max_state)",
                size=str(len(state)),
                limit=str(limit),
            )
        await self.begin(thread.thread_id, Start(WORKFLOW, state, self.defaults.task_queue), exist_ok=False)


def exists(thread_id: ThreadId) -> Conflict:
    return Conflict(f"thread {thread_id} exists already", thread_id=thread_id)
