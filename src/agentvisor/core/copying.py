"""What a copy takes of a thread's store: all of it, or the root's current checkpoint with its pending writes (S9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentvisor.core.delta import histories
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId
from agentvisor.core.records import (
    Bone,
    Checkpoint,
    CheckpointKey,
    CheckpointTuple,
    Operation,
    Projection,
    TaskWrites,
    Write,
)
from agentvisor.core.saves import is_save
from agentvisor.core.store import Store


def needed_blobs(store: Store) -> list[BlobKey]:
    """The values that a store's checkpoints, bones and writes name."""
    kept = [one.channels.values() for one in store.all_checkpoints()]
    left = [one.channels.values() for group in store.bones.values() for one in group.values()]
    written = [write.key for tasks in store.tasks.values() for task in tasks.values() for write in task.writes.values()]
    named = [*(key for channels in (*kept, *left) for key in channels), *written]
    return list(dict.fromkeys(key for key in named if key is not None))


def operations(store: Store) -> Iterator[Operation]:
    """All of a store but its blobs, in an order in which each finds what it needs: bones, then the oldest first."""
    for group in store.bones.values():
        for bone in group.values():
            yield bone
            yield from store.pending(bone.key)
    written = {bone.key for group in store.bones.values() for bone in group.values()}
    for checkpoint in sorted(store.all_checkpoints(), key=lambda one: one.checkpoint_id):
        yield checkpoint
        yield from store.pending(checkpoint.key)
        written.add(checkpoint.key)
    for key in store.tasks:
        if key not in written:
            yield from store.pending(key)
    for key, projection in store.projections.items():
        yield _with_channels(store, key, projection)
    # Those of tasks: a task that goes on in the copy has done what it has done.
    yield from (effect for effect in store.effects if effect.place.checkpoint_id is not None)


def is_part_of(part: Store, whole: Store) -> bool:
    """Whether a store holds no checkpoint and no write that the other does not: it may be what a copy has brought."""
    return all(
        whole.checkpoints.get(one.namespace, {}).get(one.checkpoint_id) == one for one in part.all_checkpoints()
    ) and all(
        (of_whole := whole.tasks.get(key, {}).get(task_id)) is not None
        and of_whole.writes.items() >= task.writes.items()
        for key, tasks in part.tasks.items()
        for task_id, task in tasks.items()
    )


def _with_channels(store: Store, key: CheckpointKey, projection: Projection) -> Projection:
    return replace(projection, channels=store.channels.get(key.namespace, ()))


@dataclass(frozen=True, slots=True)
class Head:
    """The store of a copy that begins at another thread's current checkpoint, and what that leaves behind."""

    store: Store
    blobs: list[BlobKey]
    """The values that must come along."""
    anew: list[str]
    """Nodes whose subgraphs were under way, or keep their state between calls: in the copy they start anew."""


def head_alone(store: Store) -> Head | None:
    """The root's current checkpoint with its pending writes, its parent cleared; None where there is none.

    Where no graph has run, that is what a thread's agent goes on from: the current save of every key.

    What delta channels hold is in the writes of ancestors, which do not come along: those that count are gathered
    under one bone, with the values that they start from.
    """
    found = store.get(ROOT)
    if found is None:
        return _saves_alone(store)
    checkpoint = found.checkpoint
    copy = Store()
    bone, writes = _gathered(store, checkpoint)
    if bone is not None:
        copy.add_bone(bone)
        for one in writes:
            copy.put_writes(one)
    copy.put_checkpoint(replace(checkpoint, parent_id=bone.checkpoint_id if bone else None))
    for one in found.pending:
        copy.put_writes(one)
    projection = store.projections.get(checkpoint.key)
    if projection is not None:
        copy.project(_with_channels(store, checkpoint.key, projection))
    for effect in store.effects:
        # As the pending writes: what its tasks have done is not done again, and answers that they used up stay theirs.
        if (effect.place.namespace, effect.place.checkpoint_id) == checkpoint.key:
            copy.effects.record(effect)
    return Head(copy, needed_blobs(copy), _left_behind(store, found))


def _saves_alone(store: Store) -> Head | None:
    copy = Store()
    for namespace, head in store.heads.items():
        if is_save(namespace):
            copy.put_checkpoint(store.checkpoints[namespace][head])
    return Head(copy, needed_blobs(copy), []) if copy.heads else None


def _left_behind(store: Store, head: CheckpointTuple) -> list[str]:
    finished = {task.task_id for task in head.pending if any(write.idx >= 0 for write in task.writes)}
    nodes: set[str] = set()
    for namespace in store.checkpoints:
        node, _, task_id = namespace.partition("|")[0].partition(":")
        under_way = store.roots.get(namespace) == head.checkpoint.checkpoint_id and task_id not in finished
        if namespace != ROOT and not is_save(namespace) and (under_way or not task_id):
            nodes.add(node)
    return sorted(nodes)


def _gathered(store: Store, checkpoint: Checkpoint) -> tuple[Bone | None, list[TaskWrites]]:
    """One bone that stands for all ancestors that the checkpoint's delta channels are made of, and its writes."""
    open_channels = tuple(one for one in checkpoint.delta_channels if checkpoint.channels.get(one) is None)
    found = histories(store, ROOT, checkpoint.checkpoint_id, open_channels)
    seeds = {channel: history.seed for channel, history in found.items() if history.seed is not None}
    age = {one: number for number, one in enumerate(_ancestors(store, checkpoint))}
    merged: dict[tuple[int, str, str], list[Write]] = {}
    for history in found.values():
        for one in history.writes:
            place = (age[one.checkpoint_id], one.task_path, one.task_id)
            merged.setdefault(place, []).extend(one.writes)
    if not seeds and not merged:
        return None, []
    bone = Bone(ROOT, max(age, key=lambda one: age[one]), None, seeds)
    # The order of a checkpoint's writes is that of their paths: oldest ancestor first, and there as they were.
    return bone, [
        TaskWrites(ROOT, bone.checkpoint_id, f"{task_id}:{number}", f"{number:010d}", tuple(writes))
        for number, ((_, _, task_id), writes) in enumerate(sorted(merged.items(), key=lambda item: item[0]))
    ]


def _ancestors(store: Store, checkpoint: Checkpoint) -> list[CheckpointId]:
    """The ids of what is known of the checkpoint's ancestors, the oldest first."""
    chain: list[CheckpointId] = []
    at = checkpoint.parent_id
    while at is not None and (ancestor := store.ancestor(ROOT, at)) is not None:
        chain.append(at)
        at = ancestor[0]
    return chain[::-1]
