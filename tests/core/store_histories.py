"""Random histories of a thread as LangGraph makes them: forks, namespaces, delta channels with snapshots, late writes.

What is drawn is what a checkpointer is asked to do, in an order that LangGraph keeps: a task's writes to delta channels
come before the checkpoint that takes them up; everything else may come late, early, or again.
"""

from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from agentvisor.core.ids import ROOT, BlobKey, CheckpointId, Namespace
from agentvisor.core.records import (
    Blob,
    Checkpoint,
    CheckpointKey,
    DeleteForRuns,
    Encoding,
    Operation,
    Projection,
    Prune,
    PutBlobs,
    TaskWrites,
    Write,
)
from agentvisor.protocol.convert import checkpoint_from_message
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.v1 import store_pb2

PLAIN = ("p", "q")
DELTA = ("d", "e")
STABLE = Namespace("keeps")
RUNS = ("r1", "r2", "r3")


def task_namespace(root_id: CheckpointId, number: int) -> Namespace:
    """As LangGraph names them: the task's id is made of the checkpoint that it runs under."""
    return Namespace(f"sub:{root_id}-{number}")


@dataclass
class History:
    """The operations so far, and what the next may build on."""

    keep: int
    operations: list[Operation] = field(default_factory=list)
    checkpoints: dict[CheckpointKey, Checkpoint] = field(default_factory=dict)
    values: dict[BlobKey, int] = field(default_factory=dict)
    """Depth of each value that was ever sent."""
    touched: dict[CheckpointKey, set[str]] = field(default_factory=dict)
    """The delta channels that tasks wrote to under a checkpoint."""
    count: int = 0

    def next_id(self) -> CheckpointId:
        self.count += 1
        return CheckpointId(f"{self.count:05}")

    def heads(self, namespace: Namespace) -> list[Checkpoint]:
        return [one for key, one in self.checkpoints.items() if key.namespace == namespace]


def histories(*, most: int = 40, keep: int = 3, deletes: bool = True) -> st.SearchStrategy[list[Operation]]:
    """Histories' operations in order; shrunk by their length alone, which is quick."""
    return st.builds(
        lambda seed, steps: made(seed, steps, keep=keep, deletes=deletes), st.integers(0, 2**32), st.integers(1, most)
    )


def made(seed: int, steps: int, *, keep: int, deletes: bool) -> list[Operation]:
    """The history of a seed; forks begin at one of the newest `keep` checkpoints, since no others are there to read."""
    draw, history = Random(seed), History(keep)
    kinds = ["step"] * 8 + ["again", "late", "orphan", "project", "unfinished"]
    for _ in range(steps):
        match draw.choice(kinds + ["delete_run", "prune"] * deletes):
            case "step":
                _step(draw, history)
            case "again" if history.checkpoints:
                history.operations.append(draw.choice(list(history.checkpoints.values())))
            case "late" if history.checkpoints:
                key = draw.choice(list(history.checkpoints))
                history.operations.append(_writes(draw, key, ("p", "__error__")))
            case "orphan":
                namespace = draw.choice([ROOT, STABLE, task_namespace(CheckpointId("00001"), 9)])
                history.operations.append(_writes(draw, CheckpointKey(namespace, history.next_id()), ("p",)))
            case "project" if history.checkpoints:
                key = draw.choice(list(history.checkpoints))
                names = draw.choice([(), ("p", "q")])
                history.operations.append(Projection(key.namespace, key.checkpoint_id, ("n",), (), names))
            case "unfinished":
                history.operations.append(
                    PutBlobs((_blob(history, BlobKey(f"lost{history.next_id()}".encode()), None),))
                )
            case "delete_run":
                history.operations.append(DeleteForRuns(frozenset({draw.choice(RUNS)})))
            case "prune":
                history.operations.append(Prune(keep_latest=True))
            case _:
                pass
    return history.operations


def _some(draw: Random, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if draw.random() < 0.4]


def _step(draw: Random, history: History) -> None:
    """One super-step of a namespace: a task's writes under the parent, then the checkpoint that takes them up."""
    roots = history.heads(ROOT)
    namespaces = [ROOT, ROOT, STABLE]
    if roots:
        namespaces += [task_namespace(roots[-1].checkpoint_id, number) for number in range(2)]
    namespace = draw.choice(namespaces)
    before = history.heads(namespace)
    fork = draw.random() < 0.2
    parent = None if not before else draw.choice(before[-history.keep :]) if fork else before[-1]
    is_fork = parent is not None and parent is not before[-1]
    channels: dict[str, BlobKey | None] = dict(parent.channels) if parent else {}
    written = _some(draw, DELTA) if parent else []
    if is_fork:
        # The first writes to a channel that come after an older branch went on: LangGraph replays them on that branch
        # too (its walk does not know whose they are); a pruned store does not.
        written = [name for name in written if name in channels]
    if parent is not None:
        names = (*written, *_some(draw, PLAIN))
        if names:
            task = f"task{draw.randint(0, 1)}.{history.count}"
            history.operations.append(_writes(draw, parent.key, names, task=task))
    blobs: list[Blob] = []
    for name in PLAIN:
        if draw.random() < 0.5:
            base = channels.get(name) if draw.random() < 0.5 else None
            # Values come back: the same key again.
            blob = _blob(history, BlobKey(f"{name}{draw.randint(0, 12)}".encode()), base)
            blobs.append(blob)
            channels[name] = blob.key
    for name in DELTA:
        # A fork snapshots what others wrote under its parent (LangGraph's delta_channels_with_pending_writes).
        is_others = is_fork and parent is not None and name in history.touched.get(parent.key, ())
        versioned = name in channels or name in written or is_others
        if versioned and (is_others or draw.random() < 0.15):
            blob = _blob(history, BlobKey(f"{name}-snap{history.count}".encode()), None)
            blobs.append(blob)
            channels[name] = blob.key
        elif versioned:
            channels[name] = None
    if blobs:
        history.operations.append(PutBlobs(tuple(blobs)))
    metadata: dict[str, object] = {
        "run_id": draw.choice(RUNS),
        "parents": {"": roots[-1].checkpoint_id} if namespace != ROOT and roots else {},
        "counters_since_delta_snapshot": {name: [1, 1] for name in DELTA},
    }
    message = store_pb2.Checkpoint(
        namespace=namespace,
        checkpoint_id=history.next_id(),
        parent_id=parent.checkpoint_id if parent else "",
        type="msgpack",
        record=b"record",
        metadata=metadata_to_struct(metadata),
        channels=[store_pb2.ChannelValue(channel=name, key=key or b"") for name, key in channels.items()],
        ts="ts",
    )
    one = checkpoint_from_message(message)
    history.operations.append(one)
    history.checkpoints[one.key] = one
    if parent is not None:
        history.touched.setdefault(parent.key, set()).update(written)


def _writes(draw: Random, key: CheckpointKey, channels: tuple[str, ...], *, task: str = "") -> TaskWrites:
    value = str(draw.randint(0, 10**6)).encode()
    return TaskWrites(
        key.namespace,
        key.checkpoint_id,
        task or draw.choice(["late0", "late1"]),
        draw.choice(["", "a", "b"]),
        tuple(
            Write(-1 if name == "__error__" else idx, name, "bytes", value, 0, is_state=name in DELTA)
            for idx, name in enumerate(channels)
        ),
    )


def _blob(history: History, key: BlobKey, base: BlobKey | None) -> Blob:
    depth = history.values.get(base, 0) + 1 if base is not None and base != key else 0
    if base == key or depth > 4:
        base, depth = None, 0
    history.values.setdefault(key, depth)
    encoding = Encoding.RAW if base is None else Encoding.PATCH
    return Blob(key, "bytes", encoding, b"value of " + key, base, 20, history.values[key] if base else 0)
