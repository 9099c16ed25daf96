"""What may come into a thread: every size is looked at before anything is stored, and each refusal says the way out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from agentvisor.core.effects import Effect
from agentvisor.core.errors import InvalidInput, StateTooLarge, ValueTooLarge
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace
from agentvisor.core.interrupts import Report
from agentvisor.core.questions import Answer, Ask
from agentvisor.core.records import Checkpoint, Projection, TaskWrites
from agentvisor.core.room import room_in
from agentvisor.core.saves import is_save
from agentvisor.core.thread import Thread
from agentvisor.core.weighing import delta_updates
from agentvisor.host.dropped_writes import DroppedWrites, Hit
from agentvisor.host.metrics import NEAR_LIMIT
from agentvisor.host.pending_sizes import PendingSizes

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")

_NEAR = 0.8
"""Of the limit: said once."""
_FIRST = 2
"""Checkpoints that hold a run's input besides what was there: LangGraph's of the input, and of what came of it."""
_NAMED = 3
"""Channels that an error names."""
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
    max_effects: int = 5_000


class Door:
    """The limits of one live attempt's thread."""

    def __init__(self, thread: Thread, limits: StoreLimits, *, says: bool = True) -> None:
        """`says`: it logs and counts what comes near a limit or is dropped."""
        self._thread = thread
        self._limits = limits
        self._says = says
        self._room = room_in(limits.max_state)
        self._state_bytes = thread.unsheddable_bytes()
        """At most what cannot be left out; made exact when it comes near the limit."""
        self._near = self._state_bytes > limits.max_state * _NEAR  # then an earlier attempt has said so
        run = thread.runs.get(thread.active.run_id) if thread.active is not None else None
        self._is_agent = run is not None and run.is_agent
        began = run is not None and any(attempt.progressed for attempt in run.attempts)
        self._first = _FIRST if self._is_agent and not began else 0
        """How many of the run's first checkpoints are still to come."""
        self._begins_writing = self._first > 0
        """The first update of delta channels after them is a part of the beginning: with it comes a snapshot."""
        self._goes_on_with = self._unchanged(ROOT) if self._is_agent and began else 0
        """What the state may have although it is in the reserve, since the run began in it."""
        self.dropped = DroppedWrites(thread.thread_id, says=says)
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
                f"{limits.max_namespaces} (storage.max_namespaces): "
                + (
                    "save under fewer keys"
                    if is_save(checkpoint.namespace)
                    else "call fewer subgraphs in one super-step"
                ),
                limit=str(limits.max_namespaces),
            )

    def check_projection(self, projection: Projection) -> None:
        self._check(f"what comes next after checkpoint {projection.checkpoint_id}", projection.stored_bytes,
                    self._limits.max_record, "storage.max_record", "it is not shown")  # fmt: skip
        self.check_state(projection.stored_bytes, None, self._room.beginnings)

    def check_put(self, checkpoint: Checkpoint, more: int) -> None:
        """Refuse a checkpoint, whose values are here and have `more` bytes with it, that could not be carried."""
        begins = self._first > 0 and not is_save(checkpoint.namespace)
        self.check_state(more, checkpoint, self._room.beginnings if begins else self._growth)
        if begins and checkpoint.namespace == ROOT:
            self._first -= 1
            self._goes_on_with = max(self._goes_on_with, self._state_bytes + self._room.step)

    @property
    def _growth(self) -> int:
        """What the state may have with what nothing of the reserve is meant for.

        A run that began in the reserve goes on there, so that a node on the way to what makes the state smaller runs.
        """
        room = self._room
        return max(room.growth, min(room.beginnings, self._goes_on_with))

    def check_state(self, more: int, coming: Checkpoint | None, most: int | None = None) -> None:
        """Refuse what no compaction could make fit, before it is acknowledged; not what makes the state no larger."""
        limit = self._growth if most is None else most
        size = self._with(more, coming, min(limit, int(self._limits.max_state * _NEAR)))
        if size > limit and (coming is None or size > self._unchanged(coming.namespace)):
            raise StateTooLarge(
                f"thread {self._thread.thread_id} would have {size} bytes that cannot be left out, the limit is "
                f"{limit} (storage.max_state, less a reserve): {self._way_out()}",
                size=str(size),
                limit=str(limit),
            )
        self._state_bytes = size
        self._say_how_near(size)

    def _unchanged(self, namespace: Namespace) -> int:
        """What the state would have with another checkpoint of a namespace that holds what its head does.

        Not what it has: with what goes with the head, a projection, each step could grow by as much.
        """
        store = self._thread.store
        if namespace not in store.heads:
            return 0
        head = store.checkpoints[namespace][store.heads[namespace]]
        following = CheckpointId(f"{head.checkpoint_id}~")
        return self._thread.unsheddable_bytes(replace(head, checkpoint_id=following, parent_id=head.checkpoint_id))

    def _way_out(self) -> str:
        store, limit = self._thread.store, self._limits.max_state
        subgraphs = sum(not is_save(one) for one in store.checkpoints) - 1
        if subgraphs * _BRANCH > limit // 2:
            return f"{subgraphs} calls of subgraphs are alive: call fewer in one super-step"
        updates = delta_updates(store)
        held = sum(updates.values())
        if held > limit // 4:  # and about as much again holds them together
            named = ", ".join(map(repr, [*updates][:_NAMED]))
            return (
                f"{held} bytes are updates of delta channels ({named}) since their last snapshots: give those channels "
                "a smaller snapshot_frequency, or store references to large values"
            )
        return "store references to large values, or configure storage.url"

    def missing_room(self, more: int, coming: Checkpoint | None) -> int:
        """Bytes that the state would have over what it had better not exceed; 0 or less: none."""
        comfortable = int(self._limits.max_state * _NEAR)
        return self._with(more, coming, comfortable) - comfortable

    def _with(self, more: int, coming: Checkpoint | None, exact_from: int) -> int:
        """What could not be left out with this, at most; exact where it is over so much."""
        size = self._state_bytes + more
        if size <= exact_from:
            return size
        if coming is not None:
            return self._thread.unsheddable_bytes(coming)
        self._state_bytes = self._thread.unsheddable_bytes()
        return self._state_bytes + more

    def weigh(self) -> None:
        """Count anew: much has come in by another way."""
        self._state_bytes = self._thread.unsheddable_bytes()
        self._pending = PendingSizes(self._thread.store)
        self._say_how_near(self._state_bytes)

    def _say_how_near(self, size: int) -> None:
        """Say once, of what was admitted, that the thread came near the limit: an estimate is made exact before."""
        if self._near or size <= self._limits.max_state * _NEAR:
            return
        self._near = True
        if self._says:
            NEAR_LIMIT.inc()
            log.warning("thread_near_limit", thread=self._thread.thread_id, bytes=size, limit=self._limits.max_state)

    def check_change(self, what: str, more: int) -> None:
        """Refuse a change of thread state that adds so many bytes; not one that adds none."""
        if more <= 0:
            return
        try:
            self.check_state(more, None)
        except StateTooLarge as error:
            raise StateTooLarge(f"{error.message}; {what} adds {more} bytes", **error.details) from error

    # --- effects and questions -------------------------------------------------------------------------------------

    def check_effect(self, effect: Effect, known: Effect | None) -> None:
        """Refuse an intent for which there is no room, and a result; how else it ended has its room set aside."""
        limits, what = self._limits, f"effect {effect.place.key!r}"
        if known is None and len(self._thread.store.effects) >= limits.max_effects:
            raise StateTooLarge(
                f"{what}: thread {self._thread.thread_id} remembers {limits.max_effects} effects already "
                "(storage.max_effects): forget those that can never be asked for again with agentvisor.forget_effect, "
                "begin another thread, or raise the limit",
                limit=str(limits.max_effects),
            )
        self._check(f"the result of {what}", len(effect.result), limits.max_inline_value, "storage.max_inline_value",
                    "return a reference to large data instead")  # fmt: skip
        more = effect.stored_bytes - (known.stored_bytes if known is not None else 0)
        if known is None or effect.result:
            self.check_state(max(0, more), None)

    def check_question(self, ask: Ask) -> None:
        """Refuse a question that is too large, with its input."""
        size = ask.question.stored_bytes + len(ask.input)
        self._check("the question, with the run's input,", size, self._limits.max_inline_value,
                    "storage.max_inline_value", "ask with a reference to large data")  # fmt: skip
        self.check_state(size, None)

    def check_report(self, report: Report) -> None:
        """Refuse what waits where it is too large; a run in a full thread can still ask."""
        limits = self._limits
        for one in report.interrupts:
            self._check(f"interrupt {one.id[:200]!r}", one.stored_bytes, limits.max_inline_value,
                        "storage.max_inline_value", "ask with a reference to large data")  # fmt: skip
        known = self._thread.store.interrupts.reported
        size = sum(one.stored_bytes for one in report.interrupts) - sum(
            known[one.id].stored_bytes for one in report.interrupts if one.id in known
        )
        self.check_state(max(0, size), None, self._controls)

    def check_answer(self, answer: Answer) -> None:
        self._check("the answer", len(answer.answer), self._limits.max_inline_value,
                    "storage.max_inline_value", "answer with a reference to large data")  # fmt: skip
        self.check_state(len(answer.answer), None, self._controls)

    # --- writes ----------------------------------------------------------------------------------------------------

    def admitted_writes(self, writes: TaskWrites, moving: Collection[BlobKey] = ()) -> TaskWrites | None:
        """What is kept of a task's writes; None: nothing. `moving`: values of theirs that go to external storage.

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
        elif has_state and (hit := self._over_pending(writes)) is not None:
            channels = delta_channels(writes)
            raise ValueTooLarge(
                f"the writes of task {writes.task_id} to delta channels {', '.join(map(repr, channels))} (thread "
                f"{self._thread.thread_id}) are state and do not fit: the super-step's pending writes would have "
                f"{hit.size} {hit.unit}, limit: {hit.limit} ({hit.setting}): write less in one super-step, store "
                "references to large data, raise the limit, or configure storage.url",
                channel=channels[0],
                size=str(hit.size),
                limit=str(hit.limit),
            )
        if not kept.writes:
            return None
        for one in kept.writes:
            self._check(f"write of task {writes.task_id} to channel {one.channel!r}", len(one.data),
                        self._limits.max_inline_value, "storage.max_inline_value",
                        "store a reference to large data instead")  # fmt: skip
        self._check_lasting(kept, moving, has_state=has_state)
        self._pending.will_write(kept.key, kept.task_id)
        return kept

    def _check_lasting(self, writes: TaskWrites, moving: Collection[BlobKey], *, has_state: bool) -> None:
        """Refuse writes that no compaction may leave out and that could not be carried."""
        lasting = writes if has_state else replace(writes, writes=tuple(one for one in writes.writes if not one.may_go))
        if not lasting.writes:
            return
        named = {one.key for one in lasting.writes if one.key is not None and one.key not in moving}
        blobs = [blob for key in named if (blob := self._thread.store.blobs.get(key)) is not None]
        size = lasting.stored_bytes + len(lasting.task_id) + sum(blob.stored_bytes for blob in blobs)
        begins = self._room.beginnings if self._begins_writing else None
        try:
            self.check_state(size, None, begins if has_state else self._controls)
            self._begins_writing &= not has_state or self._first > 0
        except StateTooLarge as error:
            channels = delta_channels(writes) or sorted({one.channel for one in lasting.writes})
            raise StateTooLarge(
                f"{error.message}; task {writes.task_id} writes {size} bytes to {', '.join(map(repr, channels))}",
                channel=channels[0],
                **error.details,
            ) from error

    @property
    def _controls(self) -> int:
        """What the state may have with control writes: a run in a full thread can still say how it ended, or ask."""
        return self._room.beginnings if self._is_agent else self._growth

    def _must_go(self, writes: TaskWrites) -> bool:
        """Whether a task's regular writes are dropped: there are too many, one is too large, or the state is full."""
        hit = self._over_pending(writes) or self._over_inline(writes) or self._over_state(writes.stored_bytes)
        if hit is not None:
            self.dropped.note(writes, hit)
        return hit is not None

    def _over_inline(self, writes: TaskWrites) -> Hit | None:
        largest = max((len(one.data) for one in writes.writes if one.may_go), default=0)
        limit = self._limits.max_inline_value
        return Hit("storage.max_inline_value", largest, limit) if largest > limit else None

    def _over_state(self, more: int) -> Hit | None:
        size = self._with(more, None, int(self._limits.max_state * _NEAR))
        return Hit("storage.max_state", size, self._growth) if size > self._growth else None

    def fits(self, writes: TaskWrites) -> bool:
        """Whether the super-step's pending writes are within their bytes with these."""
        return self._sizes(writes)[0] <= self._limits.max_pending_write_bytes

    def _sizes(self, writes: TaskWrites) -> tuple[int, int]:
        """Bytes and number of a super-step's pending writes, with these."""
        others = self._pending.beside(writes.key, writes.task_id)
        return others.stored_bytes + writes.stored_bytes, others.writes + len(writes.writes)

    def _over_pending(self, writes: TaskWrites) -> Hit | None:
        limits = self._limits
        size, count = self._sizes(writes)
        if size > limits.max_pending_write_bytes:
            return Hit("storage.max_pending_write_bytes", size, limits.max_pending_write_bytes)
        if count > limits.max_pending_writes:
            return Hit("storage.max_pending_writes", count, limits.max_pending_writes, "writes")
        return None

    def note_left_out(self, writes: TaskWrites, setting: str, size: int) -> None:
        """The SDK has dropped a task's regular writes by itself: one was over this setting."""
        limits = {"storage.max_value": self._limits.max_value}
        known = setting or "storage.max_inline_value"
        self.dropped.note(writes, Hit(known, size, limits.get(known, self._limits.max_inline_value)))

    def _check(self, what: str, size: int, limit: int, setting: str, way_out: str) -> None:
        if size > limit:
            raise ValueTooLarge(
                f"{what} (thread {self._thread.thread_id}) has {size} bytes; limit: {limit} ({setting}): {way_out}",
                size=str(size),
                limit=str(limit),
            )


def delta_channels(writes: TaskWrites) -> list[str]:
    """Those that a task wrote."""
    return sorted({one.channel for one in writes.writes if one.is_state})
