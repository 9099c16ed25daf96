"""Delta channels as JSON: what they are made of. Only the agent has the reducer that makes a value of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentvisor.core.delta import History, histories
from agentvisor.core.ids import BlobKey, Namespace
from agentvisor.core.records import Checkpoint
from agentvisor.core.store import Store
from agentvisor.host.render_delta_fold import folded
from agentvisor.host.render_tasks import Values, write_value
from agentvisor.host.render_typed import Json, render

Ancestors = Mapping[Namespace, Store]
"""For namespaces with delta channels, stores with all their checkpoints."""


def open_channels(checkpoint: Checkpoint) -> Sequence[str]:
    """The delta channels whose value is in the writes of ancestors."""
    return [
        one
        for one in checkpoint.delta_channels
        if one in checkpoint.channels and checkpoint.channels[one] is None and not one.startswith("__")
    ]


def made_of(checkpoint: Checkpoint, ancestors: Ancestors) -> dict[str, History]:
    """What each open delta channel of a checkpoint is made of."""
    store = ancestors.get(checkpoint.namespace)
    if store is None:
        return {}
    return histories(store, checkpoint.namespace, checkpoint.checkpoint_id, tuple(open_channels(checkpoint)))


def blobs_of_deltas(checkpoints: Iterable[Checkpoint], ancestors: Ancestors) -> set[BlobKey]:
    """The blobs that rendering these checkpoints' delta channels needs."""
    found = [history for one in checkpoints for history in made_of(one, ancestors).values()]
    keys = {history.seed for history in found}
    keys.update(write.key for history in found for task in history.writes for write in task.writes)
    return {key for key in keys if key is not None}


def delta_json(history: History, blobs: Values) -> Json:
    """The value where it can be told, else a marker: what the channel starts from, and what was written to it since."""
    seed = render(*blobs[history.seed]) if history.seed is not None and history.seed in blobs else None
    writes = [write_value(write, blobs) for task in history.writes for write in task.writes]
    value = folded(seed, writes)
    return {"__type__": "delta", "from": seed, "writes": writes} if value is None else value
