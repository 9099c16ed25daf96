"""Requests that are one message and no more, and the words by which errors name a place."""

from __future__ import annotations

from collections.abc import Sequence

from agentvisor.client.known import CheckpointName, Known
from agentvisor.client.operations import Operation
from agentvisor.core.saves import is_save
from agentvisor.protocol.v1 import store_pb2

WAYS_OUT = (
    "store a reference to large data instead, raise the limit, or configure storage.url (external storage), which "
    "takes values up to storage.max_value"
)
"""What to do about a value that is too large."""


def get_checkpoint(name: CheckpointName) -> store_pb2.StoreRequest:
    """Asks for a checkpoint's record; without an id, for the namespace's latest."""
    return store_pb2.StoreRequest(
        thread_id=name.thread,
        get=store_pb2.GetCheckpoint(namespace=name.namespace, checkpoint_id=name.checkpoint_id),
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
    named = name.namespace and not is_save(name.namespace)
    return f"{thread}, namespace {name.namespace!r}" if named else thread


def value_of(namespace: str, channel: str) -> str:
    """What a channel holds, in words: the one of a save has the name of its key."""
    return f"save {channel!r}" if is_save(namespace) else f"channel {channel!r}"
