"""Applies journalled operations to a store; applying one again changes nothing."""

from __future__ import annotations

from agentvisor.core import pruning
from agentvisor.core.records import Bone, Checkpoint, DeleteForRuns, Operation, Projection, Prune, PutBlobs, TaskWrites
from agentvisor.core.store import Store


def apply(store: Store, operation: Operation) -> None:
    """What one operation does to a store."""
    match operation:
        case PutBlobs(blobs):
            for blob in blobs:
                store.add_blob(blob)
        case Checkpoint():
            if pruning.is_too_old(store, operation.key):
                pruning.refuse(store, operation)
            else:
                store.put_checkpoint(operation)
                pruning.after_put(store, operation)
        case Bone():
            store.add_bone(operation)
        case TaskWrites():
            if not pruning.is_pruned(store, operation.key):  # late, for what is gone: nothing could ever read it
                store.put_writes(operation)
        case Projection():
            is_bone = operation.checkpoint_id in store.bones.get(operation.namespace, {})
            if not is_bone and not pruning.is_too_old(store, operation.key):
                store.project(operation)
        case DeleteForRuns(run_ids):
            pruning.delete_for_runs(store, run_ids)
        case Prune(keep_latest):
            pruning.keep_newest(store, 1 if keep_latest else 0)
