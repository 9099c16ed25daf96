"""The namespaced checkpoint store: how each operation changes it, and what can be read from it.

The rules are LangGraph's checkpointer contract: latest is the greatest id and not the last that came; writes may come
before or after their checkpoint; of a task's regular writes the first counts, of its control writes the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentvisor.core.effects import Ledger
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.interrupts import Interrupts
from agentvisor.core.questions import Questions
from agentvisor.core.records import (
    Blob,
    Bone,
    Checkpoint,
    CheckpointKey,
    CheckpointTuple,
    Projection,
    TaskWrites,
    Write,
)
from agentvisor.core.saves import is_save
from agentvisor.core.thread_state import StateChange, StateEntry, ThreadState


@dataclass(slots=True)
class Task:
    """What one task has written under a checkpoint, by index."""

    path: str
    writes: dict[int, Write] = field(default_factory=dict[int, Write])


@dataclass(slots=True)
class Store:
    """One thread's checkpoints, writes, projections and blobs; its effects, questions and state."""

    checkpoints: dict[Namespace, dict[CheckpointId, Checkpoint]] = field(
        default_factory=dict[Namespace, dict[CheckpointId, Checkpoint]]
    )
    tasks: dict[CheckpointKey, dict[str, Task]] = field(default_factory=dict[CheckpointKey, dict[str, Task]])
    projections: dict[CheckpointKey, Projection] = field(default_factory=dict[CheckpointKey, Projection])
    channels: dict[Namespace, tuple[str, ...]] = field(default_factory=dict[Namespace, tuple[str, ...]])
    blobs: dict[BlobKey, Blob] = field(default_factory=dict[BlobKey, Blob])
    heads: dict[Namespace, CheckpointId] = field(default_factory=dict[Namespace, CheckpointId])
    bones: dict[Namespace, dict[CheckpointId, Bone]] = field(default_factory=dict[Namespace, dict[CheckpointId, Bone]])
    references: dict[BlobKey, int] = field(default_factory=dict[BlobKey, int])
    """How many checkpoints, bones, writes and blobs need a blob."""
    under: dict[CheckpointId, set[Namespace]] = field(default_factory=dict[CheckpointId, set[Namespace]])
    """The namespaces of subgraphs by the root's checkpoint that their head runs under..."""
    roots: dict[Namespace, CheckpointId] = field(default_factory=dict[Namespace, CheckpointId])
    """...and that checkpoint by namespace."""
    orphans: dict[Namespace, set[CheckpointId]] = field(default_factory=dict[Namespace, set[CheckpointId]])
    """Checkpoints that are not here although writes or a projection of theirs are: they may come, or never will."""
    effects: Ledger = field(default_factory=Ledger)
    questions: Questions = field(default_factory=Questions)
    state: ThreadState = field(default_factory=ThreadState)
    interrupts: Interrupts = field(default_factory=Interrupts)
    turn: str = ""
    """The agent whose questions and interrupts these are: it had the last turn."""
    others: dict[str, tuple[Questions, Interrupts]] = field(default_factory=dict[str, tuple[Questions, Interrupts]])
    """What agents ask that had their turns before (asking.py)."""
    keep: int = 0
    """Checkpoints kept in each namespace; 0 or less keeps all (readers, who see a part, prune nothing)."""
    freed: int = field(default=0, compare=False)
    """Bytes of all that was forgotten so far, about as encoded."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Add it, or put it in the place of one with the same id."""
        namespace = checkpoint.namespace
        group = self.checkpoints.setdefault(namespace, {})
        replaced = group.get(checkpoint.checkpoint_id)
        group[checkpoint.checkpoint_id] = checkpoint
        self.hold(checkpoint.channels.values())
        if replaced is not None:
            self.release(replaced.channels.values())
        else:
            self.drop_bone(checkpoint.key)  # it is back, whole
            self._adopt(checkpoint.key)
        head = self.heads.get(namespace)
        if head is None or checkpoint.checkpoint_id >= head:
            self.set_head(namespace, checkpoint)

    def set_head(self, namespace: Namespace, checkpoint: Checkpoint | None) -> None:
        """Note the namespace's latest checkpoint; None: it has none any more."""
        left = self.roots.pop(namespace, None)
        if left is not None:
            self.under[left].discard(namespace)
            if not self.under[left]:
                del self.under[left]
        if checkpoint is None:
            self.heads.pop(namespace, None)
            return
        self.heads[namespace] = checkpoint.checkpoint_id
        if checkpoint.root_id:
            self.roots[namespace] = checkpoint.root_id
            self.under.setdefault(checkpoint.root_id, set()).add(namespace)

    def add_bone(self, bone: Bone) -> None:
        """Add it, or put it in the place of one with the same id."""
        group = self.bones.setdefault(bone.namespace, {})
        replaced = group.get(bone.checkpoint_id)
        group[bone.checkpoint_id] = bone
        self.hold(bone.channels.values())
        if replaced is not None:
            self.release(replaced.channels.values())
        self._adopt(bone.key)

    def drop_bone(self, key: CheckpointKey) -> None:
        bones = self.bones.get(key.namespace, {})
        bone = bones.pop(key.checkpoint_id, None)
        if bone is not None:
            self.freed += bone.stored_bytes
            self.release(bone.channels.values())
            if not bones:
                del self.bones[key.namespace]

    def forget(self, key: CheckpointKey) -> None:
        """Drop the writes and the projection under a checkpoint."""
        for task in self.tasks.pop(key, {}).values():
            self.drop_writes(task, list(task.writes))
        projection = self.projections.pop(key, None)
        if projection is not None:
            self.freed += projection.stored_bytes
        self._adopt(key)

    def is_here(self, key: CheckpointKey) -> bool:
        """Whether the checkpoint, or what is left of it, is here."""
        namespace, checkpoint_id = key
        return checkpoint_id in self.checkpoints.get(namespace, {}) or checkpoint_id in self.bones.get(namespace, {})

    def _note(self, key: CheckpointKey) -> None:
        if not self.is_here(key):
            self.orphans.setdefault(key.namespace, set()).add(key.checkpoint_id)

    def _adopt(self, key: CheckpointKey) -> None:
        orphans = self.orphans.get(key.namespace)
        if orphans is not None:
            orphans.discard(key.checkpoint_id)
            if not orphans:
                del self.orphans[key.namespace]

    # --- blobs -----------------------------------------------------------------------------------------------------

    def has_blob(self, key: BlobKey) -> bool:
        """Whether the thread has it for sure: what nothing needs may be here still, and is gone where it counts."""
        return self.references.get(key, 0) > 0

    def add_blob(self, blob: Blob) -> None:
        """Add it, or take it as the new form of one that is here: the same value, from another base or moved outside.

        A host that adds it may not know that it is here: what its new form rests on must be held all the same, as that
        host believes it to be.
        """
        here = self.blobs.get(blob.key)
        if here is None:
            self.blobs[blob.key] = blob
            if blob.base is not None:
                self.hold([blob.base])
        elif (blob.base, blob.encoding) == (here.base, here.encoding):
            if blob.is_external and blob.location != here.location:  # the host that sends it knows no other place
                self.blobs[blob.key] = blob
                self.freed += here.stored_bytes - blob.stored_bytes
        elif not self._rests_on(blob.base, blob.key):
            self.blobs[blob.key] = blob
            self.freed += here.stored_bytes - blob.stored_bytes
            self.hold([blob.base])
            self.release([here.base])

    def _rests_on(self, base: BlobKey | None, key: BlobKey) -> bool:
        """Whether decoding `base` needs `key`: the one may not become a difference from the other."""
        while base is not None and base != key:
            blob = self.blobs.get(base)
            base = blob.base if blob is not None else None
        return base == key

    def discard_blob(self, key: BlobKey) -> None:
        """Remove a blob that nothing needs, and what only it needed."""
        blob = self.blobs.pop(key, None)
        if blob is not None:
            self.freed += blob.stored_bytes
            if blob.base is not None:
                self.release([blob.base])

    def hold(self, keys: Iterable[BlobKey | None]) -> None:
        for key in keys:
            if key is not None:
                self.references[key] = self.references.get(key, 0) + 1

    def release(self, keys: Iterable[BlobKey | None]) -> None:
        """Need these no longer; what nothing needs is removed."""
        waiting = [key for key in keys if key is not None]
        while waiting:
            key = waiting.pop()
            left = self.references.get(key, 0) - 1
            if left > 0:
                self.references[key] = left
                continue
            self.references.pop(key, None)
            blob = self.blobs.pop(key, None)
            if blob is not None:
                self.freed += blob.stored_bytes
                if blob.base is not None:
                    waiting.append(blob.base)

    # --- thread state ----------------------------------------------------------------------------------------------

    def change_state(self, change: StateChange) -> None:
        """Apply a change of thread state, whose blob is here."""
        self.hold([change.blob])
        self.release(self.state.change(change))

    def add_entry(self, entry: StateEntry) -> None:
        """Put an entry in that was read."""
        self.state.entries[entry.scope, entry.key] = entry
        self.hold(entry.blobs)

    # --- writes and projections ------------------------------------------------------------------------------------

    def put_writes(self, writes: TaskWrites) -> None:
        self._note(writes.key)
        tasks = self.tasks.setdefault(writes.key, {})
        task = tasks.setdefault(writes.task_id, Task(writes.task_path))
        for write in writes.writes:
            replaced = task.writes.get(write.idx)
            if replaced is not None and write.idx >= 0:
                continue
            task.writes[write.idx] = write
            self.hold([write.key])
            if replaced is not None:
                self.release([replaced.key])

    def drop_writes(self, task: Task, gone: Iterable[int]) -> int:
        """Drop writes of a task by their indices; how many bytes that frees."""
        dropped = [task.writes.pop(idx) for idx in gone]
        freed = sum(one.stored_bytes for one in dropped)
        self.freed += freed
        self.release(one.key for one in dropped)
        return freed

    def project(self, projection: Projection) -> None:
        self._note(projection.key)
        self.projections[projection.key] = projection
        if projection.channels:
            self.channels[projection.namespace] = projection.channels

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(self, namespace: Namespace, checkpoint_id: CheckpointId | None = None) -> CheckpointTuple | None:
        """The checkpoint of that id, or the namespace's latest."""
        wanted = checkpoint_id or self.heads.get(namespace)
        if wanted is None:
            return None
        checkpoint = self.checkpoints.get(namespace, {}).get(wanted)
        return None if checkpoint is None else CheckpointTuple(checkpoint, self.pending(checkpoint.key))

    def pending(self, key: CheckpointKey) -> tuple[TaskWrites, ...]:
        """The writes under a checkpoint, ordered by (task_path, task_id, idx)."""
        tasks = self.tasks.get(key, {})
        ordered = sorted(tasks.items(), key=lambda item: (item[1].path, item[0]))
        return tuple(
            TaskWrites(
                key.namespace,
                key.checkpoint_id,
                task_id,
                task.path,
                tuple(task.writes[idx] for idx in sorted(task.writes)),
            )
            for task_id, task in ordered
        )

    def newest_first(
        self,
        namespace: Namespace | None = None,
        *,
        checkpoint_id: CheckpointId | None = None,
        before: CheckpointId | None = None,
        saves: bool | None = None,
    ) -> Iterator[Checkpoint]:
        """Checkpoints by descending id; `before` compares ids across namespaces (LangGraph's ReplayState does).

        `saves`: only those of `agentvisor.checkpoint`, or only all others.
        """
        if namespace is None:
            found: Iterable[Checkpoint] = (one for group in self.checkpoints.values() for one in group.values())
        else:
            found = self.checkpoints.get(namespace, {}).values()
        chosen = [
            one
            for one in found
            if (checkpoint_id is None or one.checkpoint_id == checkpoint_id)
            and (before is None or one.checkpoint_id < before)
            and (saves is None or is_save(one.namespace) is saves)
        ]
        chosen.sort(key=lambda one: (one.checkpoint_id, one.namespace), reverse=True)
        return iter(chosen)

    def latest_save(self) -> Checkpoint | None:
        """Of all saves the one with the greatest id, without looking at all of them."""
        heads = [(head, namespace) for namespace, head in self.heads.items() if is_save(namespace)]
        if not heads:
            return None
        head, namespace = max(heads)
        return self.checkpoints[namespace][head]

    def chain(self, keys: Iterable[BlobKey], *, have: frozenset[BlobKey] = frozenset()) -> list[Blob]:
        """The blobs of these keys with all that they are based on, bases first; what the caller has is left out."""
        ordered: dict[BlobKey, Blob] = {}
        for key in keys:
            links: list[Blob] = []
            at: BlobKey | None = key
            while at is not None and at not in have and at not in ordered:
                blob = self.blobs.get(at)
                if blob is None:
                    break
                links.append(blob)
                at = blob.base
            for blob in reversed(links):
                ordered[blob.key] = blob
        return list(ordered.values())

    def ancestor(
        self, namespace: Namespace, checkpoint_id: CheckpointId
    ) -> tuple[CheckpointId | None, Mapping[str, BlobKey | None]] | None:
        """The parent and channels of a checkpoint, or of what is left of it."""
        one = self.checkpoints.get(namespace, {}).get(checkpoint_id) or self.bones.get(namespace, {}).get(checkpoint_id)
        return None if one is None else (one.parent_id, one.channels)

    # --- keeping it small ------------------------------------------------------------------------------------------

    def all_checkpoints(self) -> Iterator[Checkpoint]:
        for group in self.checkpoints.values():
            yield from group.values()

    def drop_unreferenced_blobs(self) -> int:
        """Remove blobs that nothing needs (their put was cut off by a crash); how many they were."""
        before = len(self.blobs)
        for key in [key for key in self.blobs if key not in self.references]:
            self.discard_blob(key)
        return before - len(self.blobs)
