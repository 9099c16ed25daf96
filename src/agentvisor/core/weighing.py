"""How large a store is: all of it, and what no compaction can leave out; and runs. Rather more than as encoded."""

from __future__ import annotations

from collections.abc import Iterable

from agentvisor.core import asking
from agentvisor.core.bones import needs
from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace
from agentvisor.core.pruning import is_of_task
from agentvisor.core.records import Checkpoint, CheckpointKey
from agentvisor.core.runs import Attempt, Run, RunSpec
from agentvisor.core.store import Store

_NAMESPACE = 32
"""Bytes that a namespace costs beside its name and those of its channels."""
_RUN = 256
"""Bytes of a run's record beside its specification, and of an attempt that goes well."""


def stored_bytes(store: Store) -> int:
    """Size of all that is here."""
    return (
        sum(blob.stored_bytes for blob in store.blobs.values())
        + sum(one.stored_bytes for one in store.all_checkpoints())
        + sum(
            write.stored_bytes
            for tasks in store.tasks.values()
            for task in tasks.values()
            for write in task.writes.values()
        )
        + sum(one.stored_bytes for one in store.projections.values())
        + sum(bone.stored_bytes for group in store.bones.values() for bone in group.values())
        + store.effects.stored_bytes
        + asking.stored_bytes(store)
        + store.state.stored_bytes
    )


def unsheddable_bytes(store: Store, coming: Checkpoint | None = None) -> int:
    """Size of what every compaction must carry.

    That is the heads of namespaces that are not stale, the control writes under them and under checkpoints that have
    not come, what their delta channels are made of, effects, questions and thread state. With `coming`: as it will be
    once that checkpoint is put, whose blobs are here already.
    """
    size, blobs = _unsheddable(store, coming)
    said = store.effects.stored_bytes + asking.stored_bytes(store)
    said += store.state.stored_bytes
    return size + said + sum(blob.stored_bytes for blob in store.chain(blobs))


def state_bytes(store: Store) -> int:
    """Size of thread state with its values, and what those are based on."""
    blobs = store.chain(key for entry in store.state for key in entry.blobs)
    return store.state.stored_bytes + sum(blob.stored_bytes for blob in blobs)


def unsheddable_blobs(store: Store) -> set[BlobKey]:
    """The values that every compaction must carry; what they are based on is not among them."""
    return _unsheddable(store, None)[1]


def _unsheddable(store: Store, coming: Checkpoint | None) -> tuple[int, set[BlobKey]]:
    heads = _live_heads(store, coming)
    blobs = {key for head in heads.values() for key in head.channels.values() if key is not None}
    blobs.update(key for entry in store.state for key in entry.blobs)
    size = sum(head.stored_bytes + _fixed_bytes(store, head.namespace) for head in heads.values())
    for namespace, head in heads.items():
        size += _writes_bytes(store, head.key, blobs)
        projection = store.projections.get(head.key)
        size += projection.stored_bytes if projection is not None else 0
        for checkpoint_id, channels in _needed_by(store, namespace, head).items():
            key = CheckpointKey(namespace, checkpoint_id)
            size += 160 + _writes_bytes(store, key, blobs, channels)
            blobs.update(_seeds(store, key, channels))
    for namespace, orphans in store.orphans.items():
        size += sum(_writes_bytes(store, CheckpointKey(namespace, one), blobs) for one in orphans)
    return size, blobs


def delta_updates(store: Store) -> dict[str, int]:
    """Bytes of the writes that delta channels are made of, by channel; the largest first."""
    sizes: dict[str, int] = {}
    for tasks in store.tasks.values():
        for task in tasks.values():
            for idx, write in task.writes.items():
                if idx >= 0 and write.is_state:
                    blob = store.blobs.get(write.key) if write.key is not None else None
                    held = write.stored_bytes + (blob.stored_bytes if blob is not None else 0)
                    sizes[write.channel] = sizes.get(write.channel, 0) + held
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def run_bytes(spec: RunSpec) -> int:
    """What a run adds to what cannot be left out, from its acceptance to its first attempt."""
    return 2 * _RUN + len(spec.body)


def runs_bytes(runs: Iterable[Run]) -> int:
    """Size of runs; of those that have ended, without what they were given."""
    return sum(
        _RUN + sum(map(_attempt_bytes, run.attempts)) + len(run.error_message.encode())
        + (0 if run.status.terminal else len(run.spec.body))
        for run in runs
    )  # fmt: skip


def _attempt_bytes(attempt: Attempt) -> int:
    return 64 + len(attempt.host_id) + len(attempt.reason.encode())


def stale_namespaces(store: Store, head: CheckpointId | None) -> list[Namespace]:
    """Namespaces of tasks that do not run under the root's head, those of the oldest super-steps first."""
    by_age = sorted(store.roots.items(), key=lambda item: (item[1], item[0]))
    return [namespace for namespace, root_id in by_age if is_of_task(namespace) and root_id != head]


def _live_heads(store: Store, coming: Checkpoint | None) -> dict[Namespace, Checkpoint]:
    heads = {namespace: store.checkpoints[namespace][head] for namespace, head in store.heads.items()}
    if coming is not None:
        head = heads.get(coming.namespace)
        if head is None or coming.checkpoint_id >= head.checkpoint_id:
            heads[coming.namespace] = coming
    root = heads.get(ROOT)
    root_id = root.checkpoint_id if root is not None else None
    return {
        namespace: head
        for namespace, head in heads.items()
        if not is_of_task(namespace) or head.root_id is None or head.root_id == root_id
    }


def _needed_by(store: Store, namespace: Namespace, head: Checkpoint) -> dict[CheckpointId, set[str]]:
    """As if the head were all that the namespace has."""
    if not head.delta_channels:
        return {}
    group = store.checkpoints.get(namespace, {})
    return needs(Store(checkpoints={namespace: {head.checkpoint_id: head}}, bones=store.bones), namespace,
                 [one for one in group.values() if one.checkpoint_id != head.checkpoint_id])  # fmt: skip


def _writes_bytes(store: Store, key: CheckpointKey, blobs: set[BlobKey], channels: set[str] | None = None) -> int:
    """Of the writes under a checkpoint that may not go; of an ancestor those to delta channels. Adds their blobs."""
    size = 0
    for task_id, task in store.tasks.get(key, {}).items():
        whole = channels is None and any(write.is_state and idx >= 0 for idx, write in task.writes.items())
        kept = [
            write
            for idx, write in task.writes.items()
            if whole or (not write.may_go if channels is None else idx >= 0 and write.channel in channels)
        ]
        if kept:
            size += sum(write.stored_bytes for write in kept)
            size += len(task_id) + len(task.path) + len(key.namespace) + 96
            blobs.update(write.key for write in kept if write.key is not None)
    return size


def _seeds(store: Store, key: CheckpointKey, channels: set[str]) -> list[BlobKey]:
    found = store.ancestor(key.namespace, key.checkpoint_id)
    if found is None:
        return []
    return [blob for channel in channels if (blob := found[1].get(channel)) is not None]


def _fixed_bytes(store: Store, namespace: Namespace) -> int:
    names = store.channels.get(namespace, ())
    return _NAMESPACE + len(namespace) + sum(len(name) + 4 for name in names)
