"""What may come into a thread: every size is looked at before anything is stored, and each refusal says the way out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from agentvisor.core.errors import InvalidInput, StateTooLarge, ValueTooLarge
from agentvisor.core.records import Checkpoint, CheckpointKey, Projection, TaskWrites
from agentvisor.core.thread import Thread
from agentvisor.host.metrics import DROPPED_WRITES, NEAR_LIMIT
from agentvisor.host.pending_sizes import PendingSizes

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")

_NEAR = 0.8
"""Of the limit: said once."""
_BRANCH = 600
"""About what a subgraph's current checkpoint takes that cannot be left out (measured: 1,800,247 bytes for 2,305)."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """`storage.*`; bytes, and numbers of things."""

    max_inline_value: int = 1_500_000
    max_value: int = 64 * 1024 * 1024
    max_state: int = 1_800_000
    max_record: int = 256 * 1024
    max_metadata: int = 64 * 1024
    max_namespaces: int = 20_000
    max_pending_writes: int = 10_000
    max_pending_write_bytes: int = 1024 * 1024


class Door:
    """The limits of one live attempt's thread."""

    def __init__(self, thread: Thread, limits: StoreLimits) -> None:
        self._thread = thread
        self._limits = limits
        self._state_bytes = thread.unsheddable_bytes()
        """At most what cannot be left out; made exact when it comes near the limit."""
        self._near = False
        self._dropping: set[CheckpointKey] = set()
        self._pending = PendingSizes(thread.store)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def check_record(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint that is too large even without its values."""
        limits, store = self._limits, self._thread.store
        if not checkpoint.checkpoint_id:
            raise InvalidInput("a checkpoint needs an id", field="checkpoint_id")
        self._check(f"metadata of checkpoint {checkpoint.checkpoint_id}", len(checkpoint.metadata),
                    limits.max_metadata, "storage.max_metadata", "keep less in it")  # fmt: skip
        self._check(f"checkpoint {checkpoint.checkpoint_id} without its values", checkpoint.stored_bytes,
                    limits.max_record, "storage.max_record", "keep fewer channels or less metadata")  # fmt: skip
        if checkpoint.namespace not in store.checkpoints and len(store.checkpoints) >= limits.max_namespaces:
            raise StateTooLarge(
                f"thread {self._thread.thread_id} has {len(store.checkpoints)} namespaces, the limit is "
                f"{limits.max_namespaces} (storage.max_namespaces): call fewer subgraphs in one super-step",
                limit=str(limits.max_namespaces),
            )

    def check_projection(self, projection: Projection) -> None:
        self._check(f"what comes next after checkpoint {projection.checkpoint_id}", projection.stored_bytes,
                    self._limits.max_record, "storage.max_record", "it is not shown")  # fmt: skip

    def check_state(self, more: int, coming: Checkpoint | None) -> None:
        """Refuse what no compaction could make fit, before it is acknowledged."""
        limit = self._limits.max_state
        if self._state_bytes + more > limit * _NEAR:
            self._state_bytes = self._thread.unsheddable_bytes(coming)
            if coming is not None:
                more = 0
            self._say_how_near(self._state_bytes + more)
        if self._state_bytes + more > limit:
            raise StateTooLarge(
                f"thread {self._thread.thread_id} would have {self._state_bytes + more} bytes that cannot be left out, "
                f"the limit is {limit} (storage.max_state): {self._way_out()}",
                size=str(self._state_bytes + more),
                limit=str(limit),
            )
        self._state_bytes += more

    def _way_out(self) -> str:
        subgraphs = len(self._thread.store.checkpoints) - 1
        if subgraphs * _BRANCH > self._limits.max_state // 2:
            return f"{subgraphs} calls of subgraphs are alive: call fewer in one super-step"
        return "store references to large values, or configure storage.url"

    def missing_room(self, more: int, coming: Checkpoint | None) -> int:
        """Bytes that the state would have over what it had better not exceed; 0 or less: none."""
        comfortable = int(self._limits.max_state * _NEAR)
        if self._state_bytes + more > comfortable:
            self._state_bytes = self._thread.unsheddable_bytes(coming)
            more = 0 if coming is not None else more
        return self._state_bytes + more - comfortable

    def _say_how_near(self, size: int) -> None:
        near = size > self._limits.max_state * _NEAR
        if near and not self._near:
            NEAR_LIMIT.inc()
            log.warning("thread_near_limit", thread=self._thread.thread_id, bytes=size, limit=self._limits.max_state)
        self._near = near

    # --- writes ----------------------------------------------------------------------------------------------------

    def admitted_writes(self, writes: TaskWrites) -> TaskWrites | None:
        """What is kept of a task's writes; None: nothing.

        Regular writes spare the task a second execution: over the limits, or where the thread has them off (S6), they
        are dropped, all of the task's together (S5). Writes to delta channels and control writes are state: kept, or
        refused where they do not fit. A task with a write to a delta channel keeps its other writes too: with a part
        of them it would count as finished.
        """
        has_state = any(one.is_state for one in writes.writes)
        kept = writes
        if not has_state and any(one.may_go for one in writes.writes):
            if not self._thread.pending_writes_enabled or self._must_go(writes):
                kept = replace(writes, writes=tuple(one for one in writes.writes if not one.may_go))
        elif has_state and self._is_full(writes):
            size, count = self._sizes(writes)
            limits, channels = self._limits, sorted({one.channel for one in writes.writes if one.is_state})
            raise ValueTooLarge(
                f"the writes of task {writes.task_id} to delta channels {', '.join(map(repr, channels))} (thread "
                f"{self._thread.thread_id}) are state and do not fit: the super-step's pending writes would have "
                f"{size} bytes, limit: {limits.max_pending_write_bytes} (storage.max_pending_write_bytes), and be "
                f"{count}, limit: {limits.max_pending_writes} (storage.max_pending_writes): write less in one "
                "super-step, store references to large data, raise the limit, or configure storage.url",
                channel=channels[0],
                size=str(size),
                limit=str(limits.max_pending_write_bytes),
            )
        if not kept.writes:
            return None
        for one in kept.writes:
            self._check(f"write of task {writes.task_id} to channel {one.channel!r}", one.stored_bytes,
                        self._limits.max_inline_value, "storage.max_inline_value",
                        "store a reference to large data instead")  # fmt: skip
        self.check_state(kept.stored_bytes, None)
        self._pending.will_write(kept.key, kept.task_id)
        return kept

    def _must_go(self, writes: TaskWrites) -> bool:
        """Whether a task's regular writes are dropped: there are too many, one is too large, or the state is full."""
        size, limits = self._sizes(writes)[0], self._limits
        too_large = any(one.stored_bytes > limits.max_inline_value for one in writes.writes if one.may_go)
        if not (self._is_full(writes) or too_large or self._over_state(writes.stored_bytes)):
            return False
        self.note_dropped(writes, size)
        return True

    def _over_state(self, more: int) -> bool:
        limit = self._limits.max_state
        return self.missing_room(more, None) > limit - int(limit * _NEAR)

    def fits(self, writes: TaskWrites) -> bool:
        """Whether the super-step's pending writes are within their bytes with these."""
        return self._sizes(writes)[0] <= self._limits.max_pending_write_bytes

    def _sizes(self, writes: TaskWrites) -> tuple[int, int]:
        """Bytes and number of a super-step's pending writes, with these."""
        others = self._pending.beside(writes.key, writes.task_id)
        return others.stored_bytes + writes.stored_bytes, others.writes + len(writes.writes)

    def _is_full(self, writes: TaskWrites) -> bool:
        limits = self._limits
        size, count = self._sizes(writes)
        return size > limits.max_pending_write_bytes or count > limits.max_pending_writes

    def note_dropped(self, writes: TaskWrites, size: int) -> None:
        """Count and say, once for each super-step, that regular writes are dropped."""
        DROPPED_WRITES.inc()
        if writes.key not in self._dropping:
            self._dropping.add(writes.key)
            log.warning(
                "pending_writes_dropped",
                thread=self._thread.thread_id,
                namespace=writes.namespace,
                checkpoint=writes.checkpoint_id,
                task=writes.task_id,
                bytes=size,
                limit=self._limits.max_pending_write_bytes,
            )

    def _check(self, what: str, size: int, limit: int, setting: str, way_out: str) -> None:
        if size > limit:
            raise ValueTooLarge(
                f"{what} (thread {self._thread.thread_id}) has {size} bytes; limit: {limit} ({setting}): {way_out}",
                size=str(size),
                limit=str(limit),
            )
