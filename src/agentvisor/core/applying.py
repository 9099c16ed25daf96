"""Applies journalled operations to a store; applying one again changes nothing."""

from __future__ import annotations

from agentvisor.core import pruning
from agentvisor.core.effects import Effect, ForgetEffect
from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.interrupts import Note, Report, StillWaiting
from agentvisor.core.questions import Answer, Ask
from agentvisor.core.records import (
    Bone,
    Checkpoint,
    CheckpointKey,
    DeleteForRuns,
    Operation,
    Projection,
    Prune,
    PutBlobs,
    TaskWrites,
)
from agentvisor.core.store import Store
from agentvisor.core.thread_state import StateChange


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
                store.effects.supersede(operation.namespace, operation.checkpoint_id)
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
            _forget_effects(store)
        case Prune(keep_latest):
            pruning.keep_newest(store, 1 if keep_latest else 0)
            _forget_effects(store)
        case Effect():
            store.effects.record(operation)
        case ForgetEffect(scope, key):
            store.effects.forget(scope, key)
        case Ask():
            store.questions.ask(operation)
        case Answer():
            store.questions.answer(operation)
        case StateChange():
            store.change_state(operation)
        case Report():
            store.interrupts.report(operation)
        case Note():
            store.interrupts.note(operation)
        case StillWaiting():
            store.interrupts.keep(operation, store.heads.get(ROOT, ""))


def forget_runs(store: Store, run_ids: frozenset[str]) -> None:
    """Forget what these runs have made, with its effects."""
    pruning.delete_made_by(store, run_ids)
    _forget_effects(store)


def _forget_effects(store: Store) -> None:
    def is_here(namespace: Namespace, checkpoint_id: CheckpointId) -> bool:
        return store.is_here(CheckpointKey(namespace, checkpoint_id))

    store.effects.keep_where(is_here)
