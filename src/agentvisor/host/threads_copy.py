"""Copies of threads: all of one put into another's session, or a new thread from one's current checkpoint (S9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import time
from uuid import uuid4

from google.protobuf.struct_pb2 import Struct

from agentvisor.core.copying import head_alone, needed_blobs, operations
from agentvisor.core.errors import Conflict, Corrupt, StateTooLarge, Unavailable
from agentvisor.core.ids import ROOT, BlobKey, ThreadId
from agentvisor.core.pruning import keep_newest
from agentvisor.core.records import Operation, Projection
from agentvisor.core.room import room_in
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.host.attempt_log import batches
from agentvisor.host.attempt_store import AttemptStore
from agentvisor.host.render_tasks import SENT, followers
from agentvisor.host.threads import Threads
from agentvisor.protocol.reads import merged_metadata

COPIED_FROM = "copied_from"
"""Metadata of a copy: the thread that it was made of..."""
STARTS_ANEW = "subgraphs_start_anew"
"""...and the nodes whose subgraphs' states have stayed behind."""

_TRIES = 5


async def read_whole(threads: Threads, thread_id: ThreadId) -> Thread:
    """A thread with all its values, as they were at one moment."""
    for _ in range(_TRIES):
        thread = await threads.read(thread_id)
        if await _bring_values(threads, thread, thread.store, needed_blobs(thread.store)):
            return thread
    raise Unavailable(f"thread {thread_id} changes too fast to be copied: try again, or cancel its run first")


async def _bring_values(threads: Threads, thread: Thread, store: Store, keys: list[BlobKey]) -> bool:
    """Add these values to a store; False where one was pruned since the thread was read."""
    for blob in await threads.stored_blobs(thread.thread_id, keys):
        store.add_blob(blob)
    return all(key in store.blobs for key in keys)


async def put_copy(threads: Threads, source: Thread, target: AttemptStore) -> AsyncIterator[None]:
    """Put all that `source` holds into a session's store, values first and records last; yields as it gets on.

    A copy that is cut off can be made again: values that nothing names go when the session ends. `Corrupt` where an
    object is damaged or gone.
    """
    store = source.store
    verify = threads.shelf_of(store).verify
    if target.keep > 0:
        keep_newest(store, target.keep)  # what the target would forget is not sent
    size, limit = source.unsheddable_bytes(), room_in(target.limits.max_state).runs
    if size > limit:
        raise StateTooLarge(
            f"thread {source.thread_id} has {size} bytes that cannot be left out, and the limit of a copy is {limit} "
            "(storage.max_state, less a reserve)",
            size=str(size),
            limit=str(limit),
        )
    try:
        for batch in batches(store.chain(needed_blobs(store))):
            await target.bring([batch], verify)
            yield
    except Corrupt as error:
        raise _cannot_be_copied(source.thread_id, error) from error
    records: list[Operation] = [*operations(store)]
    await target.bring(records, verify)


def check_free(target: AttemptStore, thread_id: ThreadId, source: Thread) -> None:
    """`Conflict` where a thread holds anything that a copy does not bring: two histories would be mixed.

    What a copy that was cut off has brought is no hindrance to making it again.
    """
    if thread_id == source.thread_id or not target.is_part_of(source.store):
        raise Conflict(
            f"thread {thread_id} holds checkpoints already: copy to a thread of another id, or delete this one first",
            thread_id=thread_id,
        )


@dataclass(frozen=True, slots=True)
class HeadCopy:
    """A new thread that begins where another one stands."""

    thread_id: ThreadId
    anew: list[str]
    """Nodes whose subgraphs start anew in it."""

    @property
    def warnings(self) -> list[str]:
        """What its maker should know."""
        if not self.anew:
            return []
        nodes = ", ".join(repr(node) for node in self.anew)
        return [f"only the state of the root graph is copied: the subgraphs of {nodes} start anew in the copy"]


async def _tell_next(threads: Threads, source_id: ThreadId, store: Store) -> None:
    """Of a checkpoint that was copied before its agent said what comes next: nobody will say it in the copy."""
    found = store.get(ROOT)
    if found is None or found.checkpoint.key in store.projections:
        return
    sent = [key for key in [found.checkpoint.channels.get(SENT)] if key is not None]
    values = await threads.blobs(source_id, sent) if sent else {}
    following = followers(store, found.checkpoint, [], values, live=True)
    store.project(Projection(ROOT, found.checkpoint.checkpoint_id, tuple(following), (), ()))


async def copy_head(threads: Threads, source_id: ThreadId) -> HeadCopy:
    """A thread of its own with the source's current checkpoint, pending writes and metadata. It comes all at once."""
    for _ in range(_TRIES):
        source = await threads.read(source_id)
        head = head_alone(source.store)
        if head is None or await _bring_values(threads, source, head.store, head.blobs):
            break
    else:
        raise Unavailable(f"thread {source_id} changes too fast to be copied: try again, or cancel its run first")
    if head is not None:
        await _tell_next(threads, source_id, head.store)
    now = int(time() * 1000)
    said = Struct()
    said.update({COPIED_FROM: source_id} | ({STARTS_ANEW: list(head.anew)} if head and head.anew else {}))
    copy = Thread(
        thread_id=ThreadId(str(uuid4())),
        created_at_ms=now,
        updated_at_ms=now,
        pending_writes_enabled=None,
        metadata=merged_metadata(source.metadata, said),
        store=head.store if head else Store(),
        state_updated_at_ms=now,
        owner=source.owner,
    )
    try:
        await threads.create_from(copy)
    except Corrupt as error:
        raise _cannot_be_copied(source_id, error) from error
    return HeadCopy(copy.thread_id, head.anew if head else [])


def _cannot_be_copied(thread_id: ThreadId, error: Corrupt) -> Corrupt:
    return Corrupt(f"thread {thread_id} cannot be copied: {error.message}", thread_id=thread_id)
