"""Requests that are one message and no more, and the words by which errors name a place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    name: CheckpointName,
    task_id: str,
    task_path: str,
    writes: Sequence[tuple[int, str, Typed]],
    limits: Limits,
    *,
    delta_channels: Collection[str] = (),
) -> Operation[None]:
    """Store what a task wrote, each as (index, channel, value); what delta channels were written is state."""
    packed = [
        pack_write(idx, channel, value, is_state=idx >= 0 and channel in delta_channels)
        for idx, channel, value in writes
    ]
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


def delete_for_runs(thread: str, run_ids: Sequence[str], known: Known) -> Operation[None]:
    """Delete the checkpoints that these runs have made; without a thread, in every one that the caller may see."""
    yield store_pb2.StoreRequest(thread_id=thread, delete_for_runs=store_pb2.DeleteForRuns(run_ids=run_ids))
    known.forget(thread or None)


def copy_thread(source: str, target: str, known: Known) -> Operation[None]:
    """Copy everything that a thread's store holds to a thread that holds nothing yet."""
    yield store_pb2.StoreRequest(thread_id=source, copy_thread=store_pb2.CopyThread(target_thread_id=target))
    known.forget(target)


def prune(threads: Sequence[str], strategy: str, known: Known) -> Operation[None]:
    """Keep the newest checkpoint of every namespace ("keep_latest"), or nothing ("delete"); thread after thread."""
    for thread in threads:
        yield store_pb2.StoreRequest(thread_id=thread, prune=store_pb2.PruneThread(strategy=strategy))
        known.forget(thread)


def place(name: CheckpointName) -> str:
    """A thread and namespace, in words."""
    thread = f"thread {name.thread}" if name.thread else "this thread"
    return f"{thread}, namespace {name.namespace!r}" if name.namespace else thread
