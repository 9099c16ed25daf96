"""Bones: what stays of pruned checkpoints because the delta channels of kept ones live in their writes.

A delta channel's value is the writes of a checkpoint's ancestors, back to one that holds a value. A bone is such an
ancestor: its parent, the values that it holds of those channels, and its writes to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Bone, Checkpoint
from agentvisor.core.store import Store

Needs = dict[CheckpointId, set[str]]
"""Of which ancestors delta channels are made, and which channels of each."""

_NOTHING: Mapping[str, BlobKey] = {}


def needs(store: Store, namespace: Namespace, gone: list[Checkpoint]) -> Needs:
    """What the namespace's checkpoints need of their ancestors; `gone` are those that were just taken out."""
    group, bones = store.checkpoints.get(namespace, {}), store.bones.get(namespace, {})
    if not any(one.delta_channels for one in group.values()):
        return {}
    just = {one.checkpoint_id: one for one in gone}
    needed: Needs = {}
    for one in group.values():
        for channel in one.delta_channels:
            # A channel that was never written has no version: no ancestor has anything of it.
            if channel not in one.channels or one.channels[channel] is not None:
                continue
            at = one.parent_id
            while at is not None and channel not in needed.get(at, ()):
                ancestor = group.get(at) or just.get(at)
                if ancestor is not None:
                    needed.setdefault(at, set()).add(channel)
                    if ancestor.channels.get(channel) is not None or channel not in ancestor.channels:
                        break  # it holds a value, or its own writes are the first
                    at = ancestor.parent_id
                elif (bone := bones.get(at)) is not None:
                    needed.setdefault(at, set()).add(channel)
                    if channel in bone.channels:
                        break
                    at = bone.parent_id
                else:
                    break
    return needed


def leave_bones(store: Store, gone: list[Checkpoint], needed: Needs) -> None:
    """Leave the bones of those that are needed, with those of their writes that count."""
    for one in gone:
        channels = needed.get(one.checkpoint_id)
        if channels is None:
            continue
        seeds = {name: key for name in sorted(channels) if (key := one.channels.get(name)) is not None}
        store.add_bone(Bone(one.namespace, one.checkpoint_id, one.parent_id, seeds))
        _keep_writes(store, one, channels)
        projection = store.projections.pop(one.key, None)
        if projection is not None:
            store.freed += projection.stored_bytes


def _keep_writes(store: Store, one: Checkpoint, channels: set[str]) -> None:
    tasks = store.tasks.get(one.key, {})
    for task_id, task in list(tasks.items()):
        kept = {idx: write for idx, write in task.writes.items() if idx >= 0 and write.channel in channels}
        store.freed += sum(write.stored_bytes for idx, write in task.writes.items() if idx not in kept)
        task.writes = kept
        if not kept:
            del tasks[task_id]
    if not tasks:
        store.tasks.pop(one.key, None)


def sweep_bones(store: Store, namespace: Namespace, needed: Needs) -> None:
    """Forget the bones that nothing needs; those that wrote nothing that counts are skipped by the ones after them."""
    bones = store.bones.get(namespace)
    if not bones:
        return
    for bone in [one for one in bones.values() if one.checkpoint_id in needed]:
        parent_id = bone.parent_id
        while parent_id is not None and (parent := bones.get(parent_id)) is not None and _is_empty(store, parent):
            parent_id = parent.parent_id
        if parent_id != bone.parent_id:
            bones[bone.checkpoint_id] = Bone(bone.namespace, bone.checkpoint_id, parent_id, bone.channels)
    for one in list(bones.values()):
        if one.checkpoint_id not in needed:
            store.forget(one.key)
            store.drop_bone(one.key)


def _is_empty(store: Store, bone: Bone) -> bool:
    return not bone.channels and bone.key not in store.tasks
