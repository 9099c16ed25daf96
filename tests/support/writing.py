"""Requests of a writer whose operations can be told apart, and what became of them."""

from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.records import CheckpointKey
from agentvisor.core.thread import Thread
from agentvisor.protocol import blobs
from agentvisor.protocol.v1.store_pb2 import (
    ChannelValue,
    Checkpoint,
    ListCheckpoints,
    Projection,
    PutCheckpoint,
    StoreRequest,
    TaskWrites,
    Write,
)

RESUME = -4
"""A control write: of these the last one counts, so that an old one applied late shows."""


def put(number: int, *, size: int = 100, namespace: str = "") -> StoreRequest:
    """Checkpoint `number`, with a value of about `size` bytes that does not compress."""
    seed = f"{namespace}/{number}".encode()
    value = b"".join(_scramble(seed, part) for part in range(0, size, 32))[:size]
    blob = blobs.encode("bytes", value, None, blobs.Limits())
    return StoreRequest(
        put=PutCheckpoint(
            checkpoint=Checkpoint(
                namespace=namespace,
                checkpoint_id=name(number),
                parent_id=name(number - 1) if number else "",
                type="msgpack",
                record=b"record",
                channels=[ChannelValue(channel="value", key=blob.key)],
            ),
            blobs=[blob],
        )
    )


def control_write(number: int, value: str) -> StoreRequest:
    """Set what a control channel under a checkpoint holds."""
    write = Write(idx=RESUME, channel="__resume__", type="bytes", data=value.encode())
    return StoreRequest(put_writes=TaskWrites(checkpoint_id=name(number), task_id="task", writes=[write]))


def task_write(number: int, task: str, *, size: int = 100) -> StoreRequest:
    """A finished task's write under a checkpoint."""
    write = Write(idx=0, channel="out", type="bytes", data=b"w" * size)
    return StoreRequest(put_writes=TaskWrites(checkpoint_id=name(number), task_id=task, writes=[write]))


def projection(number: int) -> StoreRequest:
    return StoreRequest(project=Projection(checkpoint_id=name(number), next=["node"]))


def listing() -> StoreRequest:
    return StoreRequest(list=ListCheckpoints(namespace=""))


def name(number: int) -> CheckpointId:
    return CheckpointId(f"{number:08}")


def numbers(thread: Thread, namespace: str = "") -> set[int]:
    """The checkpoints that a reader sees."""
    return {int(one) for one in thread.store.checkpoints.get(Namespace(namespace), {})}


def control_value(thread: Thread, number: int) -> str:
    """What a reader sees of `control_write`."""
    found = thread.store.pending(CheckpointKey(ROOT, name(number)))
    return next(one.data.decode() for task in found for one in task.writes if one.idx == RESUME)


def tasks(thread: Thread, number: int) -> set[str]:
    return {one.task_id for one in thread.store.pending(CheckpointKey(ROOT, name(number)))}


def _scramble(seed: bytes, part: int) -> bytes:
    return blobs.blob_key("bytes", seed + part.to_bytes(4, "big"))[:32]
