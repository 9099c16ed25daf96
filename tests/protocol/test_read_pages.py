"""Reads in pages: each stays below what Temporal lets a query answer, and together they are the whole thread."""

import pytest

from agentvisor.core.applying import apply
from agentvisor.core.ids import BlobKey, CheckpointId, Namespace, ThreadId
from agentvisor.core.records import Bone, Checkpoint, Projection, TaskWrites, Write
from agentvisor.core.thread import Thread
from agentvisor.protocol.reads import PAGE_BYTES, read_thread
from agentvisor.protocol.threads import thread_from_message
from agentvisor.protocol.v1 import thread_pb2


def checkpoint(namespace: str, number: int) -> Checkpoint:
    return Checkpoint(
        Namespace(namespace), CheckpointId(f"{number:05}"), None, "msgpack", b"r" * 500, b"", {"a": BlobKey(b"k")}, "ts"
    )


def writes(namespace: str, number: int, *, size: int, task: str = "t") -> TaskWrites:
    one = Write(0, "c", "bytes", b"w" * size, 0)
    return TaskWrites(Namespace(namespace), CheckpointId(f"{number:05}"), task, "", (one,))


def wide_thread() -> Thread:
    """More of everything than a page holds: checkpoints, orphans, bones, namespaces with their channels."""
    thread = Thread(ThreadId("t"), 0, 0, pending_writes_enabled=True, metadata=b"")
    for number in range(1_500):
        namespace = f"node:{number:032}"
        apply(thread.store, checkpoint(namespace, number))
        apply(thread.store, writes(namespace, number, size=200))
        apply(
            thread.store, Projection(Namespace(namespace), CheckpointId(f"{number:05}"), ("n",), (), ("a", "b" * 200))
        )
        apply(thread.store, Bone(Namespace(namespace), CheckpointId("00000-"), None, {"d": BlobKey(b"seed")}))
    for number in range(1_500):
        apply(thread.store, writes("", 90_000, size=1_000, task=f"t{number}"))
    return thread


def test_no_page_is_too_large_and_the_pages_together_are_the_thread() -> None:
    thread, pages = wide_thread(), list[thread_pb2.ReadThreadReply]()
    asked = thread_pb2.ReadThread()
    while not pages or pages[-1].cursor:
        asked.cursor = pages[-1].cursor if pages else 0
        pages.append(read_thread(thread, asked))
    assert len(pages) > 2
    assert max(page.ByteSize() for page in pages) < PAGE_BYTES * 1.1
    whole = pages[0].thread
    for page in pages[1:]:
        whole.store.MergeFrom(page.thread.store)
    read = thread_from_message(whole).store
    assert read.checkpoints == thread.store.checkpoints
    assert read.tasks == thread.store.tasks
    assert read.bones == thread.store.bones
    assert read.projections == thread.store.projections
    assert read.channels == thread.store.channels
    assert read.orphans == thread.store.orphans


@pytest.mark.thorough
def test_a_read_without_checkpoints_brings_nothing_of_the_store() -> None:
    reply = read_thread(wide_thread(), thread_pb2.ReadThread(without_checkpoints=True))
    assert not reply.cursor
    assert not reply.thread.store.ByteSize()
