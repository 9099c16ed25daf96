"""Renders checkpoints as LangGraph's thread states: records and decoded blobs in, JSON out.

`values` are the state's channels as they were when the checkpoint was made; what finished tasks of an unfinished
super-step have written is shown under `tasks` (only the agent knows the reducers that would merge it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace, ThreadId, without_tasks
from agentvisor.core.records import Checkpoint, CheckpointTuple
from agentvisor.core.saves import is_save, key_of
from agentvisor.core.store import Store
from agentvisor.host.render_delta import Ancestors, delta_json, made_of
from agentvisor.host.render_msgpack import Plain
from agentvisor.host.render_tasks import Task, followers, tasks_of
from agentvisor.host.render_typed import Json, jsonable, render
from agentvisor.protocol.metadata import metadata_from_bytes

Blobs = Mapping[BlobKey, tuple[str, bytes]]
"""Channel values by key: serde type and bytes, decoded."""

_NOT_STATE = ("__", "branch:", "join:")
_MAX_SUBGRAPHS = 20
"""Levels of subgraphs in subgraphs that are shown within each other."""


@dataclass(frozen=True, slots=True)
class ThreadStates:
    """Renders states of one thread."""

    thread_id: ThreadId
    store: Store
    blobs: Blobs
    ancestors: Ancestors = field(default_factory=dict[Namespace, Store])
    """What delta channels are made of."""
    rendered: dict[BlobKey, Json] = field(default_factory=dict[BlobKey, Json])
    """Values that were rendered already: the checkpoints of a history share most of them."""

    def state(self, found: CheckpointTuple, *, live: bool, subgraphs: bool = False) -> dict[str, Json]:
        """One checkpoint as a ThreadState.

        Args:
            found: the checkpoint with its pending writes.
            live: the namespace's latest as it stands now: `next` and interrupts without what is finished or answered.
                Otherwise a record of the super-step: all its tasks, and the questions that they asked.
            subgraphs: show the latest states of subgraphs within their tasks.
        """
        return self._state(found, live=live, subgraphs=_MAX_SUBGRAPHS if subgraphs else 0)

    def _state(self, found: CheckpointTuple, *, live: bool, subgraphs: int) -> dict[str, Json]:
        checkpoint = found.checkpoint
        tasks = tasks_of(self.store, found, self.blobs)
        metadata = shown_metadata(checkpoint.metadata)
        return {
            "values": self.values(checkpoint),
            "next": list[Json](followers(self.store, checkpoint, tasks, self.blobs, live=live)),
            "tasks": [self._task(task, live=live, subgraphs=subgraphs) for task in tasks],
            "metadata": metadata,
            "created_at": checkpoint.ts,
            "checkpoint": self._address(checkpoint.namespace, checkpoint.checkpoint_id, metadata),
            "parent_checkpoint": self._address(checkpoint.namespace, checkpoint.parent_id, metadata)
            if checkpoint.parent_id is not None
            else None,
            "interrupts": [one for task in tasks for one in task.interrupts(live=live)],
            "checkpoint_id": checkpoint.checkpoint_id,
            "parent_checkpoint_id": checkpoint.parent_id,
        }

    def values(self, checkpoint: Checkpoint) -> Json:
        """The channels that are state. A save, or one special channel alone (`__root__`), is the state itself."""
        names = shown_channels(self.store, checkpoint)
        if is_save(checkpoint.namespace) or (len(names) == 1 and names[0].startswith("__")):
            return self._value(checkpoint, names[0])
        deltas = made_of(checkpoint, self.ancestors)
        return {
            name: delta_json(deltas[name], self.blobs) if name in deltas else self._value(checkpoint, name)
            for name in names
            if name in deltas or checkpoint.channels.get(name) is not None
        }

    def interrupts(self) -> dict[str, Json]:
        """The questions that wait for an answer, by the root's task."""
        head = self.store.get(ROOT)
        tasks = tasks_of(self.store, head, self.blobs) if head else []
        return {task.id: waiting for task in tasks if (waiting := task.interrupts(live=True))}

    def empty(self, namespace: Namespace = ROOT, checkpoint_id: CheckpointId | None = None) -> dict[str, Json]:
        """The state of a checkpoint that does not exist."""
        return {
            "values": {},
            "next": [],
            "tasks": [],
            "metadata": None,
            "created_at": None,
            "checkpoint": self._address(namespace, checkpoint_id, {}),
            "parent_checkpoint": None,
            "interrupts": [],
            "checkpoint_id": checkpoint_id,
            "parent_checkpoint_id": None,
        }

    def _value(self, checkpoint: Checkpoint, channel: str) -> Json:
        key = checkpoint.channels.get(channel)
        if key is None:
            return None
        blob = self.blobs.get(key)
        if blob is None:
            return {"__type__": "missing", "key": key.hex()}
        if key not in self.rendered:
            self.rendered[key] = render(*blob)
        return self.rendered[key]

    def _task(self, task: Task, *, live: bool, subgraphs: int) -> dict[str, Json]:
        below = self._subgraph(Namespace(task.subgraph)) if task.subgraph else None
        shown = below is not None and subgraphs > 0
        return {
            "id": task.id,
            "name": task.name,
            "path": task.path,
            "error": task.error,
            "interrupts": task.interrupts(live=live),
            "checkpoint": {"thread_id": self.thread_id, "checkpoint_ns": task.subgraph}
            if task.subgraph and not shown
            else None,
            # A subgraph's namespace is its task's own: its latest state is the task's, also in the past.
            "state": self._state(below, live=True, subgraphs=subgraphs - 1) if below is not None and shown else None,
            "result": task.result,
        }

    def _subgraph(self, namespace: Namespace) -> CheckpointTuple | None:
        return self.store.get(namespace) or self.store.get(without_tasks(namespace))

    def _address(
        self, namespace: Namespace, checkpoint_id: CheckpointId | None, metadata: Mapping[str, Json]
    ) -> dict[str, Json] | None:
        """The Checkpoint object of LangGraph's API; below the root it names the checkpoints of all ancestors, too."""
        if checkpoint_id is None and namespace == ROOT:
            return None
        address: dict[str, Json] = {
            "thread_id": self.thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
        parents = metadata.get("parents")
        if isinstance(parents, dict) and parents and checkpoint_id is not None:
            address["checkpoint_map"] = {**parents, namespace: checkpoint_id}
        return address


def shown_metadata(encoded: bytes) -> dict[str, Json]:
    """Metadata of a thread, run or checkpoint; a number that is not finite, which only a guest can send, is null."""
    metadata = metadata_from_bytes(encoded)
    return {name: jsonable(cast("Plain", value)) for name, value in metadata.items()}


def shown_channels(store: Store, checkpoint: Checkpoint) -> Sequence[str]:
    """The channels that are state: as the runner projected them, else all but the graph's own plumbing."""
    if is_save(checkpoint.namespace):
        return [key_of(checkpoint.namespace)]
    projected = store.channels.get(checkpoint.namespace)
    if projected:
        return projected
    names = [name for name in checkpoint.channels if not name.startswith(_NOT_STATE)]
    return names or (["__root__"] if "__root__" in checkpoint.channels else [])


def blobs_of_states(store: Store, checkpoints: Iterable[Checkpoint]) -> set[BlobKey]:
    """The blobs that rendering these checkpoints needs."""
    keys: set[BlobKey | None] = set()
    for one in checkpoints:
        keys.update(one.channels.get(name) for name in (*shown_channels(store, one), "__pregel_tasks"))
        keys.update(write.key for task in store.pending(one.key) for write in task.writes)
    return {key for key in keys if key is not None}
