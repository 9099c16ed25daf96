"""What a store forgets by itself: old checkpoints, stale namespaces; never what a delta channel's value is made of.

Pruning is part of applying a checkpoint, so that the workflow and the host that writes forget the same at the same
operation: a value that the one has, the other has.
"""

from __future__ import annotations

from collections.abc import Callable

from agentvisor.core.bones import leave_bones, needs, sweep_bones
from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.records import Checkpoint, CheckpointKey
from agentvisor.core.saves import is_save
from agentvisor.core.store import Store


def after_put(store: Store, checkpoint: Checkpoint) -> None:
    """Prune the namespace of a checkpoint that was just put, and what became stale by that."""
    namespace, keep = checkpoint.namespace, store.keep
    if keep <= 0 or len(store.checkpoints[namespace]) <= keep:
        return
    _prune_namespace(store, namespace, keep)
    oldest = min(store.checkpoints[namespace])
    _forget_orphans(store, namespace, oldest)
    if namespace == ROOT:
        _reclaim_namespaces(store, oldest)


def keep_newest(store: Store, keep: int) -> None:
    """Leave the newest `keep` checkpoints of every namespace; 0: nothing at all."""
    for namespace in list(store.checkpoints):
        if keep:
            _prune_namespace(store, namespace, keep)
        else:
            drop_namespace(store, namespace)
    if not keep:
        for namespace in list(store.orphans):
            _forget_orphans(store, namespace)
        store.drop_unreferenced_blobs()


def _prune_namespace(store: Store, namespace: Namespace, keep: int) -> None:
    group = store.checkpoints[namespace]
    excess = len(group) - keep
    if excess > 0:
        drop_checkpoints(store, namespace, [min(group)] if excess == 1 else sorted(group)[:excess])


def _reclaim_namespaces(store: Store, oldest_root: CheckpointId) -> None:
    """Forget the namespaces of subgraphs that ran under checkpoints of the root which are gone (S8).

    A namespace without a task id belongs to a subgraph that keeps its state between calls: it is never stale.
    """
    for root_id in [one for one in store.under if one < oldest_root]:
        for namespace in [one for one in store.under[root_id] if is_of_task(one)]:
            drop_namespace(store, namespace)
    for namespace in [one for one in store.orphans if is_of_task(one) and one not in store.checkpoints]:
        _forget_orphans(store, namespace, oldest_root)


def is_of_task(namespace: Namespace) -> bool:
    """Whether a namespace belongs to one task of one super-step, and not to a subgraph that keeps its state."""
    return ":" in namespace and not is_save(namespace)  # the key of a save may be anything


def _forget_orphans(store: Store, namespace: Namespace, oldest: CheckpointId | None = None) -> None:
    """Forget writes whose checkpoint never came, and would be pruned at once if it came now."""
    for checkpoint_id in list(store.orphans.get(namespace, ())):
        if oldest is None or checkpoint_id < oldest:
            store.forget(CheckpointKey(namespace, checkpoint_id))


def drop_namespace(store: Store, namespace: Namespace) -> None:
    """Forget a namespace with all that is in it."""
    store.set_head(namespace, None)
    for one in store.checkpoints.pop(namespace, {}).values():
        _drop(store, one)
        store.forget(one.key)
    for bone in list(store.bones.get(namespace, {}).values()):
        store.forget(bone.key)
        store.drop_bone(bone.key)
    _forget_orphans(store, namespace)
    store.channels.pop(namespace, None)


def drop_checkpoints(store: Store, namespace: Namespace, doomed: list[CheckpointId]) -> None:
    """Forget these checkpoints; where the delta channels of kept ones need them, their bones stay."""
    group = store.checkpoints[namespace]
    gone = [group.pop(checkpoint_id) for checkpoint_id in doomed if checkpoint_id in group]
    if store.heads.get(namespace) not in group:
        store.set_head(namespace, group[max(group)] if group else None)
    needed = needs(store, namespace, gone)
    leave_bones(store, gone, needed)
    for one in gone:
        if one.checkpoint_id not in needed:
            store.forget(one.key)
        _drop(store, one)
    sweep_bones(store, namespace, needed)
    if not group:
        del store.checkpoints[namespace]
        if is_of_task(namespace):
            store.channels.pop(namespace, None)


def _drop(store: Store, one: Checkpoint) -> None:
    store.freed += one.stored_bytes
    store.release(one.channels.values())


def delete_for_runs(store: Store, run_ids: frozenset[str]) -> None:
    """Forget what says in its metadata that it is of these runs, as LangGraph's savers do."""
    _drop_where(store, lambda one: one.run_id in run_ids)


def delete_made_by(store: Store, run_ids: frozenset[str]) -> None:
    """Forget what these runs have made, whatever it says: the thread is back where it was before them."""
    _drop_where(store, lambda one: one.maker in run_ids)


def _drop_where(store: Store, is_doomed: Callable[[Checkpoint], bool]) -> None:
    for namespace, group in list(store.checkpoints.items()):
        doomed = [one.checkpoint_id for one in group.values() if is_doomed(one)]
        if doomed:
            drop_checkpoints(store, namespace, doomed)


def drop_own(store: Store, namespace: Namespace, doomed: list[CheckpointId]) -> None:
    """Forget these checkpoints of a namespace, where they are still kept."""
    here = [one for one in doomed if one in store.checkpoints.get(namespace, {})]
    if here:
        drop_checkpoints(store, namespace, here)


def refuse(store: Store, checkpoint: Checkpoint) -> None:
    """Forget a checkpoint that would be pruned at once, and the values that came for it."""
    store.hold(checkpoint.channels.values())
    store.release(checkpoint.channels.values())


def is_pruned(store: Store, key: CheckpointKey) -> bool:
    """Whether a checkpoint is gone for good, with all that could be filed under it."""
    return is_too_old(store, key) and not store.is_here(key)


def is_too_old(store: Store, key: CheckpointKey) -> bool:
    """Whether a checkpoint that is put now is older than all that its namespace, which is full, keeps."""
    group = store.checkpoints.get(key.namespace)
    if store.keep <= 0 or group is None or len(group) < store.keep or key.checkpoint_id in group:
        return False
    return key.checkpoint_id < min(group)
