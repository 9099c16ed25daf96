"""What a delta channel's value is made of: writes along a checkpoint's ancestors, from the nearest stored value on."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.records import CheckpointKey, TaskWrites
from agentvisor.core.store import Store


@dataclass(slots=True)
class History:
    """One channel's writes, oldest first, and the value that they start from."""

    seed: BlobKey | None = None
    writes: list[TaskWrites] = field(default_factory=list[TaskWrites])


def histories(
    store: Store, namespace: Namespace, checkpoint_id: CheckpointId | None, channels: tuple[str, ...]
) -> dict[str, History]:
    """The histories of these channels at a checkpoint (the latest, where none is named); its own writes are left out.

    Follows parents, not ids: on a forked thread only ancestors count. The ancestor that holds a value contributes
    that value and its own writes, which come after it (LangGraph's contract).
    """
    found = {channel: History() for channel in channels}
    target = store.get(namespace, checkpoint_id)
    at = target.checkpoint.parent_id if target else None
    open_channels = set(channels)
    while at is not None and open_channels:
        ancestor = store.ancestor(namespace, at)
        if ancestor is None:
            break
        parent, held = ancestor
        for channel in open_channels:
            found[channel].writes[:0] = _writes_to(store, CheckpointKey(namespace, at), channel)
        for channel in [one for one in open_channels if held.get(one) is not None]:
            found[channel].seed = held[channel]
            open_channels.discard(channel)
        at = parent
    return found


def _writes_to(store: Store, key: CheckpointKey, channel: str) -> list[TaskWrites]:
    chosen: list[TaskWrites] = []
    for task in store.pending(key):
        writes = tuple(one for one in task.writes if one.channel == channel and one.idx >= 0)
        if writes:
            chosen.append(TaskWrites(task.namespace, task.checkpoint_id, task.task_id, task.task_path, writes))
    return chosen
