"""What it takes to undo a run: which checkpoints it has put, and what it has changed of what was there before it.

Kept while a run may still be rolled back, beside the store and not in it: it is noted operation by operation. Never
undone are effects, which have happened, and thread state, whose revisions never go back.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from agentvisor.core import pruning
from agentvisor.core.effects import Effect
from agentvisor.core.ids import CheckpointId, Namespace, RunId
from agentvisor.core.interrupts import Interrupts
from agentvisor.core.questions import Questions
from agentvisor.core.records import (
    Checkpoint,
    CheckpointKey,
    DeleteForRuns,
    Operation,
    Projection,
    Prune,
    TaskWrites,
    Write,
)
from agentvisor.core.store import Store, Task

Slot = tuple[str, int]
"""A task and the index of a write of it."""

NOT_NOTED = "it began under a version of AgentVisor that noted nothing of what it changed"
DELETED = "it has deleted checkpoints of the thread itself"
MADE_SMALLER = "what was noted of its changes had to be left out of the thread's state, which did not fit"


@dataclass(slots=True)
class Before:
    """A thread's store before a run, as far as the run has changed it."""

    run_id: RunId
    questions: Questions
    interrupts: Interrupts
    heads: dict[Namespace, CheckpointId] = field(default_factory=dict[Namespace, CheckpointId])
    """Of namespaces that the run has put checkpoints into, and that were there before it."""
    put: dict[CheckpointKey, None] = field(default_factory=dict[CheckpointKey, None])
    """The run's own checkpoints."""
    written: dict[CheckpointKey, dict[Slot, Write | None]] = field(
        default_factory=dict[CheckpointKey, dict[Slot, Write | None]]
    )
    """What it has written under others: what was there before, or None. A control write takes the place of another."""
    projected: dict[CheckpointKey, Projection | None] = field(default_factory=dict[CheckpointKey, Projection | None])
    """What was known to come next after others, where the run has said so anew."""
    effects: dict[tuple[str, str], Effect] = field(default_factory=dict[tuple[str, str], Effect])
    """Of tasks of others' checkpoints that were forgotten with a checkpoint of the run: those tasks may run again."""
    lost: str = ""
    """Why the run cannot be rolled back any more."""
    turn: str = ""
    """The agent whose questions and interrupts those are..."""
    others: dict[str, tuple[Questions, Interrupts]] = field(default_factory=dict[str, tuple[Questions, Interrupts]])
    """...and what other agents asked."""

    @staticmethod
    def of(run_id: RunId, store: Store) -> Before:
        """Where a run begins."""
        others = {agent: _copied(*asks) for agent, asks in store.others.items()}
        return Before(run_id, *_copied(store.questions, store.interrupts), turn=store.turn, others=others)

    def note(self, store: Store, operation: Operation) -> None:
        """Note what an operation of the run is about to change."""
        if self.lost:
            return
        match operation:
            case Checkpoint():
                if not pruning.is_too_old(store, operation.key):
                    self._note_checkpoint(store, operation)
            case TaskWrites():
                if operation.key not in self.put and not pruning.is_pruned(store, operation.key):
                    self._note_writes(store, operation)
            case Projection():
                if operation.key not in self.put:
                    self.projected.setdefault(operation.key, store.projections.get(operation.key))
            case Prune() | DeleteForRuns():
                self.forget(store, DELETED)
            case _:
                return

    def _note_checkpoint(self, store: Store, checkpoint: Checkpoint) -> None:
        namespace, key = checkpoint.namespace, checkpoint.key
        head = store.heads.get(namespace)
        if head is not None and namespace not in self.heads and CheckpointKey(namespace, head) not in self.put:
            self.heads[namespace] = head
        for effect in store.effects.superseded_by(namespace, checkpoint.checkpoint_id):
            place = effect.place
            if place.checkpoint_id is None or CheckpointKey(place.namespace, place.checkpoint_id) not in self.put:
                self.effects[place.scope, place.key] = effect
        if not store.is_here(key):
            self.put[key] = None
            self._release(store, key)  # its writes came before it, and go with it
            self.projected.pop(key, None)

    def _note_writes(self, store: Store, writes: TaskWrites) -> None:
        slots = self.written.setdefault(writes.key, {})
        task = store.tasks.get(writes.key, {}).get(writes.task_id)
        for write in writes.writes:
            was = task.writes.get(write.idx) if task is not None else None
            changes = was is None or write.idx < 0
            if changes and (writes.task_id, write.idx) not in slots:
                slots[writes.task_id, write.idx] = was
                store.hold([was.key if was is not None else None])

    def _release(self, store: Store, key: CheckpointKey) -> None:
        store.release(was.key for was in self.written.pop(key, {}).values() if was is not None)

    def without(self, store: Store, run_ids: AbstractSet[str]) -> None:
        """Runs before it are about to be deleted: what they have made is not brought back, and is not missed."""
        gone = {one.key for one in store.all_checkpoints() if one.maker in run_ids} - self.put.keys()
        for key in gone:
            self._release(store, key)
            self.projected.pop(key, None)
        self.heads = {ns: head for ns, head in self.heads.items() if CheckpointKey(ns, head) not in gone}

    def hold(self, store: Store) -> None:
        """Keep the values of what was written over, in a store that was read."""
        for slots in self.written.values():
            store.hold(was.key for was in slots.values() if was is not None)

    def forget(self, store: Store, why: str = "") -> None:
        """Nothing is undone any more."""
        for key in list(self.written):
            self._release(store, key)
        self.heads, self.put, self.projected, self.effects, self.lost = {}, {}, {}, {}, why
        self.questions, self.interrupts, self.turn, self.others = Questions(), Interrupts(), "", {}

    def why_not(self, store: Store) -> str:
        """Why the store cannot be brought back to where it was; empty: it can."""
        if self.lost:
            return self.lost
        for namespace, head in self.heads.items():
            if head not in store.checkpoints.get(namespace, {}):
                where = f"namespace {namespace!r}" if namespace else "the thread"
                return (
                    f"{where} stood at checkpoint {head} before it, which is no longer kept "
                    "(temporal.max_checkpoint_history)"
                )
        return ""

    def restore(self, store: Store) -> None:
        """Bring the store back to where it was before the run. Only where `why_not` has no objection."""
        for namespace in dict.fromkeys(key.namespace for key in self.put):
            pruning.drop_own(store, namespace, [key.checkpoint_id for key in self.put if key.namespace == namespace])
        for key, slots in list(self.written.items()):
            self._take_back(store, key, slots)
        for key, projection in self.projected.items():
            self._project_again(store, key, projection)
        for effect in self.effects.values():
            if store.effects.get(effect.place.scope, effect.place.key) is None:
                store.effects.record(effect)
        store.effects.keep_where(lambda namespace, one: store.is_here(CheckpointKey(namespace, one)))
        store.questions, store.interrupts = self.questions, self.interrupts
        store.turn, store.others = self.turn, self.others
        self.written.clear()
        store.drop_unreferenced_blobs()

    def _project_again(self, store: Store, key: CheckpointKey, was: Projection | None) -> None:
        if was is not None:
            store.projections[key] = was
        else:
            store.projections.pop(key, None)
            if not store.is_here(key) and key not in store.tasks:
                store.forget(key)

    def _take_back(self, store: Store, key: CheckpointKey, slots: dict[Slot, Write | None]) -> None:
        tasks = store.tasks.setdefault(key, {})
        for (task_id, idx), was in slots.items():
            task = tasks.setdefault(task_id, Task(""))
            store.drop_writes(task, [idx] if idx in task.writes else [])
            if was is not None:
                task.writes[idx] = was  # held since it was written over
            if not task.writes:
                del tasks[task_id]
        if not tasks:
            del store.tasks[key]
            if not store.is_here(key) and key not in store.projections:
                store.forget(key)


def _copied(asked: Questions, waiting: Interrupts) -> tuple[Questions, Interrupts]:
    return Questions(asked.input, dict(asked.asked)), replace(
        waiting,
        reported=dict(waiting.reported),
        noted=dict(waiting.noted),
        aside=dict(waiting.aside),
        answered=dict(waiting.answered),
        closed=dict(waiting.closed),
    )
