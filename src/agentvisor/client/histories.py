"""What delta channels are made of: one request for the writes of all ancestors, then the values they start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentvisor.client.encoding import Typed
from agentvisor.client.known import CheckpointName, Known
from agentvisor.client.operations import Operation
from agentvisor.client.reads import load_values, written
from agentvisor.protocol.v1 import store_pb2


@dataclass(frozen=True, slots=True)
class FoundHistory:
    """One channel's history at a checkpoint; everything in it is still serialised."""

    seed: Typed | None
    """What the writes start from; None: from nothing."""
    writes: list[tuple[str, str, Typed]]
    """(task id, channel, value), oldest first."""


def delta_history(name: CheckpointName, channels: Sequence[str], known: Known) -> Operation[dict[str, FoundHistory]]:
    """Read the histories of these channels at a checkpoint, at the namespace's latest where `name` has no id."""
    asked = store_pb2.DeltaHistory(namespace=name.namespace, checkpoint_id=name.checkpoint_id, channels=channels)
    reply = yield store_pb2.StoreRequest(thread_id=name.thread, delta_history=asked)
    found = reply.delta_history.channels
    here = known.namespace_values(name.thread, name.namespace)
    names = {one.seed: f"channel {one.channel!r}" for one in found if one.seed}
    for one in found:
        written_keys = [write.key for task in one.writes for write in task.writes if write.key]
        names.update((key, f"write to channel {one.channel!r}") for key in written_keys if key not in names)
    loaded = yield from load_values(name.thread, list(names), here, names)
    return {
        one.channel: FoundHistory(
            seed=(loaded.values[one.seed].type, loaded.values[one.seed].data) if one.seed else None,
            writes=[
                (task.task_id, write.channel, written(write, loaded.values))
                for task in one.writes
                for write in task.writes
            ],
        )
        for one in found
    }
