"""Bones: what stays of pruned checkpoints because the delta channels of kept ones live in their writes.

A delta channel's value is the writes of a checkpoint's ancestors, back to one that holds a value. A bone is such an
ancestor: its parent, the values that it holds of those channels, and its writes to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import Bone, Checkpoint, CheckpointKey
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
        _keep_writes(store, one.key, channels)
        projection = store.projections.pop(one.key, None)
        if projection is not None:
            store.freed += projection.stored_bytes


def _keep_writes(store: Store, key: CheckpointKey, channels: set[str]) -> None:
    tasks = store.tasks.get(key, {})
    for task_id, task in list(tasks.items()):
        gone = [idx for idx, write in task.writes.items() if idx < 0 or write.channel not in channels]
        store.drop_writes(task, gone)
        if not task.writes:
            del tasks[task_id]
    if not tasks:
        store.tasks.pop(key, None)


def sweep_bones(store: Store, namespace: Namespace, needed: Needs) -> None:
    """Forget the bones that nothing needs, and of the others what nothing needs any more.

    Those that hold nothing that counts are skipped by the ones after them: a channel that is seldom written would
    otherwise keep a bone of every super-step.
    """
    bones = store.bones.get(namespace)
    if not bones:
        return
    for bone in list(bones.values()):
        if bone.checkpoint_id in needed:
            _trim(store, bone, needed[bone.checkpoint_id])
    reached: set[CheckpointId] = set()
    for one in store.checkpoints.get(namespace, {}).values():
        at = one.parent_id
        while at is not None and at in needed and at not in reached and (bone := bones.get(at)) is not None:
            reached.add(at)
            at = bone.parent_id
            while at is not None and (parent := bones.get(at)) is not None and _is_empty(store, parent):
                at = parent.parent_id
            if at != bone.parent_id:
                bones[bone.checkpoint_id] = Bone(namespace, bone.checkpoint_id, at, bone.channels)
    for bone in list(bones.values()):
        if bone.checkpoint_id not in reached:
            store.forget(bone.key)
            store.drop_bone(bone.key)


def _trim(store: Store, bone: Bone, channels: set[str]) -> None:
    _keep_writes(store, bone.key, channels)
    if not bone.channels.keys() <= channels:
        seeds = {name: key for name, key in bone.channels.items() if name in channels}
        store.add_bone(Bone(bone.namespace, bone.checkpoint_id, bone.parent_id, seeds))


def _is_empty(store: Store, bone: Bone) -> bool:
    return not bone.channels and bone.key not in store.tasks
