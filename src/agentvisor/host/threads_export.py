"""Threads into files: all that a thread holds, as it stands at one moment, read value by value as the file is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from time import time

import structlog

from agentvisor import __version__
from agentvisor.core.copying import needed_blobs
from agentvisor.core.errors import AgentVisorError, Internal, Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.records import Blob
from agentvisor.core.runs import Run
from agentvisor.core.store import Store
from agentvisor.core.thread import STATE_VERSION, Thread
from agentvisor.host.blob_shelf import BlobShelf, part_of
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.threads import Threads
from agentvisor.protocol.convert import blob_to_message
from agentvisor.protocol.exports import FORMAT, PART_BYTES, Writer, failed
from agentvisor.protocol.stores import Loose, add_loose, checkpoints_to_message, loose_parts, state_parts
from agentvisor.protocol.threads import run_to_message, thread_to_message
from agentvisor.protocol.v1 import export_pb2, thread_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.exports")

_TRIES = 5
_PART_BYTES = 256 * 1024
"""Of records of a thread that are gathered in one record of the file."""
_OVERHEAD = 120
"""Bytes about a value beside its data."""
_FOR_THE_HOST = ("owner", "incarnation", "active", "notices", "before", "sweep_run_id", "swept_at_ms")
"""Of a thread what another place does not go on with."""


@dataclass(frozen=True, slots=True)
class Export:
    """A thread that is read, but for the data of its values."""

    thread: Thread
    blobs: list[Blob]
    """Bases first."""
    parts: list[thread_pb2.Thread]
    threads: Threads

    @property
    def size(self) -> int:
        """Bytes of the file, about."""
        return sum(one.ByteSize() + 16 for one in self.parts) + sum(one.data_bytes + _OVERHEAD for one in self.blobs)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file. What goes wrong once it has begun is its last record."""
        writer = Writer()
        yield writer.begin(self._header())
        for one in self.parts:
            yield writer.record(export_pb2.ExportRecord(thread=one))
        store = Store(blobs={one.key: one for one in self.blobs})
        for blob in self.blobs:
            store.hold([blob.key])  # so that what is decoded of it is kept for the next, which may start from it
        shelf = self.threads.shelf_of(store)
        try:
            for blob in self.blobs:
                async for record in _records(blob, shelf, self.threads.external):
                    yield writer.record(record)
        except AgentVisorError as error:
            log.warning("export_cut", thread=self.thread.thread_id, error=error.code, text=error.message)
            yield failed(error.code, error.message)
            return
        except Exception:
            log.exception("export_failed", thread=self.thread.thread_id)
            yield failed(Internal.code, f"thread {self.thread.thread_id}: the host's log says why")
            return
        yield writer.end()

    def _header(self) -> export_pb2.ExportHeader:
        return export_pb2.ExportHeader(
            format=FORMAT,
            made_by=__version__,
            thread_id=self.thread.thread_id,
            exported_at_ms=int(time() * 1000),
            state_version=STATE_VERSION,
            values=len(self.blobs),
            size=self.size,
        )


async def export(threads: Threads, thread_id: ThreadId) -> Export:
    """Read all of a thread; a run that is at work on it goes on, and the file has what was acknowledged by now."""
    for _ in range(_TRIES):
        thread = await threads.whole(thread_id)
        wanted = [*needed_blobs(thread.store), *(key for entry in thread.store.state for key in entry.blobs)]
        blobs = await threads.stored_blobs(thread_id, dict.fromkeys(wanted))
        if {blob.key for blob in blobs}.issuperset(wanted):
            return Export(thread, blobs, list(_parts(thread, _runs(thread))), threads)
    raise Unavailable(f"thread {thread_id} changes too fast to be exported: try again, or cancel its run first")


def _runs(thread: Thread) -> list[Run]:
    """The clients' own sessions are nobody's history."""
    return [run for run in thread.runs.values() if not run.is_session and not run.rolled_back]


def _parts(thread: Thread, runs: Iterable[Run]) -> Iterator[thread_pb2.Thread]:
    """The thread without its values, in parts of a bounded size."""
    facts = thread_to_message(thread, thread_pb2.Store())
    for name in ("runs", "store", *_FOR_THE_HOST):
        facts.ClearField(name)  # pyright: ignore[reportArgumentType] - the stub wants a literal
    yield facts
    for run in runs:
        yield thread_pb2.Thread(runs=[run_to_message(run)])
    store, gathered = thread.store, thread_pb2.Thread()
    checkpoints = (checkpoints_to_message(store, [one]) for one in store.all_checkpoints())
    for part in chain(checkpoints, loose_parts(store), state_parts(store)):
        _add(gathered.store, part)
        if gathered.ByteSize() > _PART_BYTES:
            yield gathered
            gathered = thread_pb2.Thread()
    yield gathered


def _add(message: thread_pb2.Store, part: thread_pb2.Store | Loose) -> None:
    if isinstance(part, thread_pb2.Store):
        message.MergeFrom(part)
    else:
        add_loose(message, part)


async def _records(
    blob: Blob, shelf: BlobShelf, external: ExternalStorage | None
) -> AsyncIterator[export_pb2.ExportRecord]:
    """A value, found to be what its key says: a file that is kept for bad days must be worth keeping."""
    message = blob_to_message(blob)
    message.location = ""
    if not blob.is_external:
        await shelf.check(blob)
        message.stored_size = 0
        yield export_pb2.ExportRecord(value=message)
        return
    room = nullcontext() if external is None else external.room.taking(blob.stored_size + blob.size)
    async with room:
        await shelf.verify(blob, await part_of(blob, 0, blob.stored_size, external))
    yield export_pb2.ExportRecord(value=message)
    # Read anew, part by part: who takes the file slowly must not hold the memory for large values.
    for at in range(0, blob.stored_size, PART_BYTES):
        yield export_pb2.ExportRecord(part=await part_of(blob, at, PART_BYTES, external))
