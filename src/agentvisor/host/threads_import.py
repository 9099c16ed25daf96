"""Threads from files: checked piece by piece as they come in, and created at the end, all at once or not at all.

Nothing of a file is taken on trust: every value is compared with its key, every record is read as what it says it is,
and whatever cannot be understood is refused before the thread is there. No object is built out of anything.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import time
from typing import Protocol
from uuid import uuid4

from agentvisor.core.copying import needed_blobs
from agentvisor.core.errors import (
    AgentVisorError,
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
    StateTooLarge,
    Unavailable,
    ValueTooLarge,
)
from agentvisor.core.ids import BlobKey, ThreadId, run_id
from agentvisor.core.ids import thread_id as checked
from agentvisor.core.interrupts import Interrupts
from agentvisor.core.questions import Questions
from agentvisor.core.records import Blob
from agentvisor.core.runs import Run
from agentvisor.core.thread import Thread
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.host.external.places import Names, folder_of
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.incoming import MOVED_FROM
from agentvisor.host.threads import Threads
from agentvisor.protocol.convert import blob_from_message
from agentvisor.protocol.exports import Reader
from agentvisor.protocol.threads import thread_from_message, thread_to_message
from agentvisor.protocol.v1 import export_pb2, run_pb2, store_pb2, thread_pb2

ENDED = "the thread was exported while this run was under way; start a new run to go on from the latest checkpoint"
"""What becomes of a run that had not ended: nobody goes on with it in another place."""

_MOST_RECORDS_BYTES = 16 * 1024 * 1024
"""Of a thread without its values: far more than any thread's state may have."""
_LITTLE = 1024 * 1024
"""Stored bytes of a value over its size, at most: what does not compress grows by its frames."""


class Limits(Protocol):
    """`storage.*`, as far as it counts here."""

    @property
    def max_inline_value(self) -> int: ...
    @property
    def max_value(self) -> int: ...
    @property
    def max_state(self) -> int: ...


async def import_thread(
    threads: Threads, pieces: AsyncIterator[bytes], limits: Limits, named: ThreadId | None = None
) -> ThreadId:
    """Create the thread that a file holds, for the caller, under this id or its own.

    `Conflict` where there is a thread of that id, were it empty: what is acknowledged on it meanwhile must not go.
    `InvalidInput` says what is wrong with the file, and where. Nothing is left of a file that is refused.
    """
    incoming = _Incoming(threads, limits, named)
    try:
        async for piece in pieces:
            for record in incoming.reader.feed(piece):
                await incoming.take(record)
        incoming.reader.close()
        thread = incoming.whole()
    except BaseException:
        incoming.discard()
        raise
    try:
        await threads.create_imported(thread)
    except Unavailable as error:
        # It may have come about: its objects stay, and go with the thread of that id.
        raise Unavailable(
            f"{error.message}; whether thread {thread.thread_id} was imported is not known: look, and import it again "
            "where it is not there",
            thread_id=thread.thread_id,
        ) from error
    except AgentVisorError:
        incoming.discard()
        raise
    return thread.thread_id


@dataclass(slots=True)
class _Coming:
    """A value whose data comes in parts."""

    message: store_pb2.Blob
    parts: list[bytes] = field(default_factory=list[bytes])
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Built:
    """The thread that the file's records are, whose values are still to come."""

    thread: Thread
    shelf: BlobShelf
    names: Names | None
    """For values in external storage; None: there is none."""
    wanted: frozenset[BlobKey]


class _Incoming:
    """A thread that comes in, as far as it is here."""

    def __init__(self, threads: Threads, limits: Limits, named: ThreadId | None) -> None:
        self.reader = Reader()
        self._threads = threads
        self._limits = limits
        self._named = named
        self._message = thread_pb2.Thread()
        self._size = 0
        self._built_once: _Built | None = None
        self._coming: _Coming | None = None
        self._inline = 0

    async def take(self, record: export_pb2.ExportRecord) -> None:
        """The file's next record."""
        kind = record.WhichOneof("kind")
        if self._coming is not None and kind != "part":
            raise self.reader.wrong(f"value {self._coming.message.key.hex()[:16]} is not whole")
        match kind:
            case "header":
                await self._begin(record.header)
            case "thread":
                self._merge(record.thread)
            case "value":
                await self._value(record.value)
            case "part":
                await self._part(record.part)
            case _:
                self._built()  # a thread without values

    async def _begin(self, header: export_pb2.ExportHeader) -> None:
        self._named = self._named or checked(header.thread_id)
        try:
            await self._threads.version(self._named)
        except NotFound:
            return
        raise Conflict(
            f"thread {self._named} exists already: import under another id, or delete that thread first",
            thread_id=self._named,
        )

    def _merge(self, part: thread_pb2.Thread) -> None:
        if self._built_once is not None:
            raise self.reader.wrong("a record of the thread comes after its values")
        self._size += part.ByteSize()
        if self._size > _MOST_RECORDS_BYTES:
            raise self.reader.wrong("the thread's records are larger than any thread is")
        self._message.MergeFrom(part)

    def _built(self) -> _Built:
        """The thread, once all its records are here."""
        if self._built_once is None:
            thread = self._understood()
            shelf = BlobShelf(
                thread.store, _nothing_more, max_value_bytes=self._limits.max_value, external=self._external
            )
            folder = folder_of(thread.thread_id, thread.incarnation)
            names = self._external.names(folder) if self._external is not None else None
            self._built_once = _Built(thread, shelf, names, frozenset(_needed(thread)))
        return self._built_once

    @property
    def _external(self) -> ExternalStorage | None:
        return self._threads.external

    def _understood(self) -> Thread:
        """The thread that the records are, as this place begins it; `InvalidInput` where they are none."""
        message, now = self._message, int(time() * 1000)
        for name in ("owner", "incarnation", "active", "notices", "before", "sweep_run_id", "swept_at_ms", "failure",
                     "compactions"):  # fmt: skip
            message.ClearField(name)  # pyright: ignore[reportArgumentType] - the stub wants a literal
        if message.store.blobs:
            raise self.reader.wrong("a value stands among the thread's records")
        runs = [run for run in message.runs if run.spec.kind != run_pb2.RUN_KIND_SESSION and not run.rolled_back]
        del message.runs[:]
        message.runs.extend(runs)
        message.thread_id = self._named or ""
        try:
            thread = thread_from_message(message)
            _check(thread)
        except Unavailable as error:  # of a newer version
            raise InvalidInput(f"the file cannot be read here: {error.message}") from error
        except AgentVisorError as error:
            raise InvalidInput(f"the file is damaged: {error.message}") from error
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidInput(f"the file is damaged: its records are not those of a thread ({error})") from error
        thread.incarnation = uuid4().hex
        thread.updated_at_ms = thread.used_at_ms = now
        return thread

    # --- values ----------------------------------------------------------------------------------------------------

    async def _value(self, message: store_pb2.Blob) -> None:
        self._built()
        if message.stored_size:
            limit = self._limits.max_value + _LITTLE
            if message.stored_size > limit:
                raise ValueTooLarge(
                    f"value {message.key.hex()[:16]} has {message.stored_size} bytes as stored, the limit is {limit} "
                    "(storage.max_value): raise it on this host",
                    limit=str(limit),
                )
            self._coming = _Coming(message)
        else:
            await self._put(message, message.data, outside=False)

    async def _part(self, data: bytes) -> None:
        coming = self._coming
        if coming is None:
            raise self.reader.wrong("a part of no value")
        coming.parts.append(data)
        coming.size += len(data)
        if coming.size > coming.message.stored_size:
            raise self.reader.wrong(f"value {coming.message.key.hex()[:16]} has more parts than it says")
        if coming.size == coming.message.stored_size:
            self._coming = None
            await self._put(coming.message, b"".join(coming.parts), outside=True)

    async def _put(self, message: store_pb2.Blob, data: bytes, *, outside: bool) -> None:
        """Take a value in that is what its key says. `outside`: it was in external storage where it comes from."""
        built = self._built()
        store = built.thread.store
        try:
            blob = replace(blob_from_message(message), data=data, location="", stored_size=0)
            if blob.key in store.blobs:
                raise Corrupt(f"value {blob.key.hex()[:16]} is there twice")
            await built.shelf.check(blob)
        except (Corrupt, KeyError) as error:
            raise self.reader.wrong(
                error.message if isinstance(error, Corrupt) else "a value without its base"
            ) from error
        room = self._limits.max_state - self._inline
        if outside or len(data) > min(self._limits.max_inline_value, room if len(data) >= MOVED_FROM else len(data)):
            blob = await self._moved(blob, built.names)
        self._inline += len(blob.data)
        if self._inline > self._limits.max_state:
            raise StateTooLarge(
                f"the thread's values have over {self._limits.max_state} bytes (storage.max_state): there is no room "
                "for them: set storage.url on this host, or raise the limit",
                limit=str(self._limits.max_state),
            )
        store.add_blob(blob)

    async def _moved(self, blob: Blob, names: Names | None) -> Blob:
        """The value in external storage; where there is none, as it is if it is small enough."""
        external = self._external
        if external is None or names is None:
            if len(blob.data) > self._limits.max_inline_value:
                raise ValueTooLarge(
                    f"value {blob.key.hex()[:16]} has {len(blob.data)} bytes as stored, the limit is "
                    f"{self._limits.max_inline_value} (storage.max_inline_value): set storage.url on this host",
                    limit=str(self._limits.max_inline_value),
                )
            return blob
        location = names.new(blob.key)
        await external.write(location, blob.data, f"value {blob.key.hex()[:16]} of a thread that is imported")
        return replace(blob, data=b"", location=location, stored_size=len(blob.data))

    # --- the end ---------------------------------------------------------------------------------------------------

    def whole(self) -> Thread:
        """The thread, ready to be created."""
        built = self._built()
        thread = built.thread
        missing = [key for key in built.wanted if key not in thread.store.blobs]
        if missing:
            raise InvalidInput(
                f"the file is damaged: {len(missing)} values are missing, {missing[0].hex()[:16]} among them; export "
                "the thread again"
            )
        thread.end_all(ENDED, thread.updated_at_ms)
        thread.store.drop_unreferenced_blobs()
        thread_from_message(thread_to_message(thread))  # as its workflow will read it
        return thread

    def discard(self) -> None:
        """Let nothing of it remain."""
        external, built = self._external, self._built_once
        if external is not None and built is not None:
            thread = built.thread
            folder = folder_of(thread.thread_id, thread.incarnation)
            external.begin(f"values of {thread.thread_id}", external.delete_below(folder))


async def _nothing_more(_: list[BlobKey]) -> list[Blob]:
    return []


def _needed(thread: Thread) -> Iterator[BlobKey]:
    yield from needed_blobs(thread.store)
    for entry in thread.store.state:
        yield from entry.blobs


# --- what a thread's records may be ----------------------------------------------------------------------------------


def _check(thread: Thread) -> None:
    """Refuse what the routes, or the thread's workflow, could only fail on later."""
    store = thread.store
    for run in thread.runs.values():
        _check_run(run)
    for key in (*(one.key for one in store.all_checkpoints()), *store.tasks, *store.projections):
        if not key.checkpoint_id or len(key.checkpoint_id) > 200:
            raise Corrupt("a checkpoint has no proper id")
    for projection in store.projections.values():
        _check_json("a task's path", (one.path for one in projection.tasks))
    _check_json("an effect's result", (one.result for one in store.effects))
    for questions, interrupts in ((store.questions, store.interrupts), *store.others.values()):
        _check_asked(questions, interrupts)


def _check_run(run: Run) -> None:
    run_id(run.run_id)
    spec = run_pb2.RunSpec.FromString(run.spec.body)
    if not spec.agent or len(spec.agent) > 200:
        raise Corrupt(f"run {run.run_id} has no proper agent")
    given = (spec.input, spec.command, spec.config, spec.context, spec.kwargs, spec.supersteps, run.output)
    _check_json(f"what run {run.run_id} was given or returned", given)


def _check_asked(questions: Questions, interrupts: Interrupts) -> None:
    for one in questions.asked.values():
        terms = one.terms
        _check_json(f"question {one.id[:80]}", (one.value, one.answer, terms.schema, terms.default_answer))
    groups = (interrupts.reported, interrupts.noted, interrupts.aside, interrupts.answered)
    for one in (asked for group in groups for asked in group.values()):
        terms = one.terms
        _check_json(f"interrupt {one.id[:80]}", (one.value, one.belongs_to, terms.schema, terms.default_answer))


def _check_json(what: str, texts: Iterable[bytes | str | None]) -> None:
    for text in texts:
        try:
            if text:
                json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Corrupt(f"{what} is not JSON") from error
