"""What a store forgets by itself: old checkpoints, stale namespaces; never what a delta channel's value is made of.

Pruning is part of applying a checkpoint, so that the workflow and the host that writes forget the same at the same
operation: a value that the one has, the other has.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Bone, Checkpoint, CheckpointKey
from agentvisor.core.store import Store


def after_put(store: Store, checkpoint: Checkpoint) -> None:
    """Prune the namespace of a checkpoint that was just put, and what became stale by that."""
    if store.keep > 0:
        _prune_namespace(store, checkpoint.namespace, store.keep)


def keep_newest(store: Store, keep: int) -> None:
    """Leave the newest `keep` checkpoints of every namespace."""
    for namespace in list(store.checkpoints):
        if keep:
            _prune_namespace(store, namespace, keep)
        else:
            drop_namespace(store, namespace)
    if not keep:
        store.tasks.clear()
        store.drop_unreferenced_blobs()


def _prune_namespace(store: Store, namespace: Namespace, keep: int) -> None:
    group = store.checkpoints[namespace]
    excess = len(group) - keep
    if excess <= 0:
        return
    oldest = [min(group)] if excess == 1 else sorted(group)[:excess]
    drop_checkpoints(store, namespace, oldest)
    if namespace == ROOT:
        _reclaim_namespaces(store, min(group))


def _reclaim_namespaces(store: Store, oldest_root: CheckpointId) -> None:
    """Forget the namespaces of subgraphs that ran under checkpoints of the root which are gone (S8).

    A namespace without a task id belongs to a subgraph that keeps its state between calls: it is never stale.
    """
    for root_id in [one for one in store.under if one < oldest_root]:
        for namespace in [one for one in store.under[root_id] if ":" in one]:
            drop_namespace(store, namespace)


def drop_namespace(store: Store, namespace: Namespace) -> None:
    """Forget a namespace with all that is in it."""
    store.set_head(namespace, None)
    for one in store.checkpoints.pop(namespace, {}).values():
        store.release(one.channels.values())
    for bone in store.bones.pop(namespace, {}).values():
        store.release(bone.channels.values())
    for index in (store.tasks, store.projections):
        for key in [key for key in index if key.namespace == namespace]:
            del index[key]
    store.channels.pop(namespace, None)


def drop_checkpoints(store: Store, namespace: Namespace, doomed: list[CheckpointId]) -> None:
    """Forget these checkpoints; where the delta channels of kept ones need them, their bones stay."""
    group = store.checkpoints[namespace]
    gone = [group.pop(checkpoint_id) for checkpoint_id in doomed if checkpoint_id in group]
    if store.heads.get(namespace) not in group:
        store.set_head(namespace, group[max(group)] if group else None)
    needed = delta_needs(store, namespace, gone)
    for one in gone:
        channels = needed.get(one.checkpoint_id)
        if channels is None:
            store.tasks.pop(one.key, None)
        else:
            _leave_bone(store, one, channels)
        store.projections.pop(one.key, None)
        store.release(one.channels.values())
    _sweep_bones(store, namespace, needed)
    if not group:
        del store.checkpoints[namespace]


def _leave_bone(store: Store, one: Checkpoint, channels: set[str]) -> None:
    seeds = {name: key for name in channels if (key := one.channels.get(name)) is not None}
    store.add_bone(Bone(one.namespace, one.checkpoint_id, one.parent_id, seeds))
    tasks = store.tasks.get(one.key, {})
    for task_id, task in list(tasks.items()):
        task.writes = {idx: write for idx, write in task.writes.items() if idx >= 0 and write.channel in channels}
        if not task.writes:
            del tasks[task_id]


def _sweep_bones(store: Store, namespace: Namespace, needed: dict[CheckpointId, set[str]]) -> None:
    bones = store.bones.get(namespace, {})
    for checkpoint_id in [one for one in bones if one not in needed]:
        bone = bones.pop(checkpoint_id)
        store.tasks.pop(bone.key, None)
        store.release(bone.channels.values())
    if not bones:
        store.bones.pop(namespace, None)


def delta_needs(store: Store, namespace: Namespace, gone: list[Checkpoint]) -> dict[CheckpointId, set[str]]:
    """Which ancestors the delta channels of the namespace's checkpoints are made of, and which channels of each."""
    group = store.checkpoints.get(namespace, {})
    parents: dict[CheckpointId, tuple[CheckpointId | None, Mapping[str, BlobKey]]] = {
        one.checkpoint_id: (one.parent_id, one.channels) for one in store.bones.get(namespace, {}).values()
    }
    for one in (*gone, *group.values()):
        parents[one.checkpoint_id] = (one.parent_id, {name: key for name, key in one.channels.items() if key})
    needed: dict[CheckpointId, set[str]] = {}
    for one in group.values():
        for channel in one.delta_channels:
            if one.channels.get(channel) is not None:
                continue
            at = one.parent_id
            while at is not None and at in parents and channel not in needed.setdefault(at, set()):
                needed[at].add(channel)
                at, held = parents[at]
                if channel in held:
                    break
    return {checkpoint_id: channels for checkpoint_id, channels in needed.items() if channels}


def delete_for_runs(store: Store, run_ids: frozenset[str]) -> None:
    """Forget what these runs have made: the thread is back where it was before them."""
    for namespace, group in list(store.checkpoints.items()):
        doomed = [one.checkpoint_id for one in group.values() if one.run_id in run_ids]
        if doomed:
            drop_checkpoints(store, namespace, doomed)


def is_pruned(store: Store, key: CheckpointKey) -> bool:
    """Whether a checkpoint is older than all that its full namespace keeps, and gone."""
    group = store.checkpoints.get(key.namespace)
    if store.keep <= 0 or group is None or len(group) < store.keep or key.checkpoint_id in group:
        return False
    return key.checkpoint_id < min(group) and key.checkpoint_id not in store.bones.get(key.namespace, {})
