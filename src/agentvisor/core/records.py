"""What the store holds: checkpoints, blobs, pending writes, projections. Immutable values; bytes are opaque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from agentvisor.core.effects import Effect, ForgetEffect
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace
from agentvisor.core.interrupts import Note, Report, StillWaiting
from agentvisor.core.questions import Answer, Ask
from agentvisor.core.thread_state import StateChange


class Encoding(IntEnum):
    """How a blob's bytes are stored; the numbers are those of the wire."""

    RAW = 1
    ZSTD = 2
    PATCH = 3
    SPLICE = 4


@dataclass(frozen=True, slots=True)
class Blob:
    """A channel value, addressed by its content; PATCH and SPLICE are differences from `base`."""

    key: BlobKey
    type: str
    encoding: Encoding
    data: bytes
    base: BlobKey | None
    size: int
    depth: int
    location: str = ""
    """Where the data is in external storage; `data` is empty then."""
    stored_size: int = 0
    """Length of the data where it is not here."""

    @property
    def is_external(self) -> bool:
        return bool(self.location)

    @property
    def data_bytes(self) -> int:
        """Length of the data, wherever it is."""
        return self.stored_size or len(self.data)

    @property
    def stored_bytes(self) -> int:
        return len(self.data) + len(self.key) + len(self.type) + len(self.location) + 16


class CheckpointKey(NamedTuple):
    namespace: Namespace
    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint without its channel values; `channels` maps each channel to its blob, or None where it is empty."""

    namespace: Namespace
    checkpoint_id: CheckpointId
    parent_id: CheckpointId | None
    type: str
    record: bytes
    metadata: bytes  # an encoded protobuf Struct (S26)
    channels: Mapping[str, BlobKey | None]
    ts: str
    root_id: CheckpointId | None = None
    """The root's checkpoint that a subgraph's namespace runs under; None for the root itself."""
    run_id: str = ""
    """As its metadata has it, which is the agent's to write."""
    made_by: str = ""
    """The run that has put it, where that is another."""
    delta_channels: tuple[str, ...] = ()
    """Channels whose value is in the writes of ancestors, back to one that holds a value (LangGraph's DeltaChannel)."""

    @property
    def key(self) -> CheckpointKey:
        return CheckpointKey(self.namespace, self.checkpoint_id)

    @property
    def maker(self) -> str:
        """The run that has put it; of what a client outside has put, what it says."""
        return self.made_by or self.run_id

    @property
    def stored_bytes(self) -> int:
        names = sum(len(channel) + 40 for channel in self.channels)
        return len(self.record) + len(self.metadata) + len(self.namespace) + names + 128


@dataclass(frozen=True, slots=True)
class Bone:
    """What is left of a pruned checkpoint because the delta channels of a kept one live in its writes."""

    namespace: Namespace
    checkpoint_id: CheckpointId
    parent_id: CheckpointId | None
    """The nearest ancestor that is needed too: those between, which wrote nothing that counts, are gone."""
    channels: Mapping[str, BlobKey]

    @property
    def key(self) -> CheckpointKey:
        return CheckpointKey(self.namespace, self.checkpoint_id)

    @property
    def stored_bytes(self) -> int:
        return len(self.namespace) + 96 + sum(len(channel) + 40 for channel in self.channels)


@dataclass(frozen=True, slots=True)
class Write:
    """One value that a finished task wrote; negative `idx`: a control write (error, interrupt, resume, scheduled)."""

    idx: int
    channel: str
    type: str
    data: bytes
    size: int  # decoded length where data is a zstd frame, else 0
    is_state: bool = False  # a delta channel's: never dropped, over a limit refused
    key: BlobKey | None = None
    """The value is this blob; `data` is empty then."""

    @property
    def may_go(self) -> bool:
        """Losing it costs a second execution of its task, and nothing else."""
        return self.idx >= 0 and not self.is_state

    @property
    def stored_bytes(self) -> int:
        return len(self.data) + len(self.channel) + 24 + (40 if self.key else 0)


@dataclass(frozen=True, slots=True)
class TaskWrites:
    """Writes of one task under one checkpoint."""

    namespace: Namespace
    checkpoint_id: CheckpointId
    task_id: str
    task_path: str
    writes: tuple[Write, ...]

    @property
    def key(self) -> CheckpointKey:
        return CheckpointKey(self.namespace, self.checkpoint_id)

    @property
    def stored_bytes(self) -> int:
        values = sum(write.stored_bytes for write in self.writes)
        return values + len(self.namespace) + len(self.task_path) + 96


@dataclass(frozen=True, slots=True)
class ProjectedTask:
    id: str
    name: str
    path: str  # JSON
    subgraph: str


@dataclass(frozen=True, slots=True)
class Projection:
    """What only the user's graph knows of a checkpoint: what comes next. No `channels`: as before in this namespace."""

    namespace: Namespace
    checkpoint_id: CheckpointId
    next: tuple[str, ...]
    tasks: tuple[ProjectedTask, ...]
    channels: tuple[str, ...]

    @property
    def key(self) -> CheckpointKey:
        return CheckpointKey(self.namespace, self.checkpoint_id)

    @property
    def stored_bytes(self) -> int:
        return (
            96 + sum(len(name) for name in self.next) + sum(96 + len(task.name) + len(task.path) for task in self.tasks)
        )


@dataclass(frozen=True, slots=True)
class PutBlobs:
    """Blobs that a following checkpoint refers to, bases first."""

    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class DeleteForRuns:
    """Remove every checkpoint, with its writes, that one of these runs has made."""

    run_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Prune:
    """Keep the newest checkpoint of every namespace, with its writes; or nothing at all."""

    keep_latest: bool


Operation = (
    PutBlobs
    | Checkpoint
    | Bone
    | TaskWrites
    | Projection
    | DeleteForRuns
    | Prune
    | Effect
    | ForgetEffect
    | Ask
    | Answer
    | StateChange
    | Report
    | Note
    | StillWaiting
)
"""What an attempt may journal."""


@dataclass(frozen=True, slots=True)
class CheckpointTuple:
    """A checkpoint as it is read, with its pending writes in the order of (task_path, task_id, idx)."""

    checkpoint: Checkpoint
    pending: tuple[TaskWrites, ...]
