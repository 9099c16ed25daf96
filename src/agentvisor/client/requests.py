"""Requests that are one message and no more, and the words by which errors name a place."""

from __future__ import annotations

from collections.abc import Sequence

from agentvisor.client.encoding import Typed, pack_write
from agentvisor.client.known import CheckpointName, Known
from agentvisor.client.operations import Operation
from agentvisor.core.errors import ValueTooLarge
from agentvisor.protocol.blobs import Limits
from agentvisor.protocol.v1 import store_pb2


def get_checkpoint(name: CheckpointName) -> store_pb2.StoreRequest:
    """Asks for a checkpoint's record; without an id, for the namespace's latest."""
    return store_pb2.StoreRequest(
        thread_id=name.thread,
        get=store_pb2.GetCheckpoint(namespace=name.namespace, checkpoint_id=name.checkpoint_id),
    )


def put_writes(
    name: CheckpointName, task_id: str, task_path: str, writes: Sequence[tuple[int, str, Typed]], limits: Limits
) -> Operation[None]:
    """Store what a task wrote, each as (index, channel, value)."""
    packed = [pack_write(idx, channel, value) for idx, channel, value in writes]
    for write in packed:
        for size, limit in (
            (write.size, limits.max_value_bytes),
            (len(write.data), limits.max_stored_bytes),
        ):
            if size > limit:
                raise ValueTooLarge(
                    f"the write of task {task_id} to channel {write.channel!r} of {place(name)} has {size} bytes, "
                    f"the limit is {limit}: store a reference to large data instead, or raise the limit",
                    channel=write.channel,
                    size=str(size),
                    limit=str(limit),
                )
    yield store_pb2.StoreRequest(
        thread_id=name.thread,
        put_writes=store_pb2.TaskWrites(
            namespace=name.namespace,
            checkpoint_id=name.checkpoint_id,
            task_id=task_id,
            task_path=task_path,
            writes=packed,
        ),
    )


def delete_thread(thread: str, known: Known) -> Operation[None]:
    """Delete a thread with all that it holds; nothing happens where there is none."""
    # Before the outcome is known, too: what is forgotten is only sent again.
    known.forget(thread)
    yield store_pb2.StoreRequest(thread_id=thread, delete_thread=store_pb2.DeleteThread())
    known.forget(thread)


def place(name: CheckpointName) -> str:
    """A thread and namespace, in words."""
    thread = f"thread {name.thread}" if name.thread else "this thread"
    return f"{thread}, namespace {name.namespace!r}" if name.namespace else thread
