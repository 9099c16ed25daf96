"""The namespaced checkpoint store: how each operation changes it, and what can be read from it.

The rules are LangGraph's checkpointer contract: latest is the greatest id and not the last that came; writes may come
before or after their checkpoint; of a task's regular writes the first counts, of its control writes the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import (
    Blob,
    Checkpoint,
    CheckpointKey,
    CheckpointTuple,
    Operation,
    Projection,
    PutBlobs,
    TaskWrites,
    Write,
)


@dataclass(slots=True)
class _Task:
    path: str
    writes: dict[int, Write] = field(default_factory=dict[int, Write])


@dataclass(slots=True)
class Store:
    """One thread's checkpoints, writes, projections and blobs."""

    checkpoints: dict[Namespace, dict[CheckpointId, Checkpoint]] = field(
        default_factory=dict[Namespace, dict[CheckpointId, Checkpoint]]
    )
    tasks: dict[CheckpointKey, dict[str, _Task]] = field(default_factory=dict[CheckpointKey, dict[str, _Task]])
    projections: dict[CheckpointKey, Projection] = field(default_factory=dict[CheckpointKey, Projection])
    channels: dict[Namespace, tuple[str, ...]] = field(default_factory=dict[Namespace, tuple[str, ...]])
    blobs: dict[BlobKey, Blob] = field(default_factory=dict[BlobKey, Blob])
    heads: dict[Namespace, CheckpointId] = field(default_factory=dict[Namespace, CheckpointId])

    def apply(self, operation: Operation) -> None:
        """Apply one operation; applying it again changes nothing."""
        match operation:
            case PutBlobs(blobs):
                for blob in blobs:
                    self.blobs.setdefault(blob.key, blob)
            case Checkpoint():
                self._put_checkpoint(operation)
            case TaskWrites():
                self._put_writes(operation)
            case Projection():
                self._project(operation)

    def _put_checkpoint(self, checkpoint: Checkpoint) -> None:
        namespace = checkpoint.namespace
        self.checkpoints.setdefault(namespace, {})[checkpoint.checkpoint_id] = checkpoint
        head = self.heads.get(namespace)
        if head is None or checkpoint.checkpoint_id > head:
            self.heads[namespace] = checkpoint.checkpoint_id

    def _put_writes(self, writes: TaskWrites) -> None:
        tasks = self.tasks.setdefault(writes.key, {})
        task = tasks.setdefault(writes.task_id, _Task(writes.task_path))
        for write in writes.writes:
            if write.idx < 0:
                task.writes[write.idx] = write
            else:
                task.writes.setdefault(write.idx, write)

    def _project(self, projection: Projection) -> None:
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
    ) -> Iterator[Checkpoint]:
        """Checkpoints by descending id; `before` compares ids across namespaces (LangGraph's ReplayState does)."""
        if namespace is None:
            found: Iterable[Checkpoint] = (one for group in self.checkpoints.values() for one in group.values())
        else:
            found = self.checkpoints.get(namespace, {}).values()
        chosen = [
            one
            for one in found
            if (checkpoint_id is None or one.checkpoint_id == checkpoint_id)
            and (before is None or one.checkpoint_id < before)
        ]
        chosen.sort(key=lambda one: (one.checkpoint_id, one.namespace), reverse=True)
        return iter(chosen)

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

    # --- keeping it small ------------------------------------------------------------------------------------------

    def referenced(self, checkpoints: Iterable[Checkpoint]) -> list[Blob]:
        """Every blob that reading these checkpoints needs."""
        return self.chain(key for one in checkpoints for key in one.channels.values() if key is not None)

    def all_checkpoints(self) -> Iterator[Checkpoint]:
        for group in self.checkpoints.values():
            yield from group.values()

    def drop_unreferenced_blobs(self) -> int:
        """Remove blobs that no checkpoint needs (their put was cut off by a crash); how many they were."""
        kept = {blob.key: blob for blob in self.referenced(self.all_checkpoints())}
        dropped = len(self.blobs) - len(kept)
        self.blobs = {key: blob for key, blob in self.blobs.items() if key in kept}
        return dropped

    def drop_checkpoint(self, key: CheckpointKey) -> None:
        """Remove one checkpoint with its writes; never the head of its namespace."""
        if self.heads.get(key.namespace) == key.checkpoint_id:
            return
        self.checkpoints.get(key.namespace, {}).pop(key.checkpoint_id, None)
        self.tasks.pop(key, None)
        self.projections.pop(key, None)

    def unsheddable_bytes(self, coming: Checkpoint | None = None) -> int:
        """Size of what no compaction leaves out: heads, writes to them, and writes whose checkpoint has not come.

        With `coming`: as it will be once that checkpoint is put, whose blobs are here already.
        """
        heads = {namespace: self.checkpoints[namespace][head] for namespace, head in self.heads.items()}
        if coming is not None:
            head = heads.get(coming.namespace)
            if head is None or coming.checkpoint_id >= head.checkpoint_id:
                heads[coming.namespace] = coming
        blobs = sum(blob.stored_bytes for blob in self.referenced(heads.values()))
        records = sum(head.stored_bytes for head in heads.values())
        kept = {head.key for head in heads.values()}
        writes = sum(
            one.stored_bytes
            for key in self.tasks
            if key in kept or key.checkpoint_id not in self.checkpoints.get(key.namespace, {})
            for one in self.pending(key)
        )
        projections = sum(one.stored_bytes for key, one in self.projections.items() if key in kept)
        return blobs + records + writes + projections
