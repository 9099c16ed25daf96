"""Values on their way into a thread: collected, checked against their keys, and put where there is room for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

from agentvisor.core.errors import Corrupt, ValueTooLarge
from agentvisor.core.ids import BlobKey
from agentvisor.core.records import Blob, Encoding
from agentvisor.core.thread import Thread
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.host.door import StoreLimits
from agentvisor.host.external.attempt_objects import AttemptObjects
from agentvisor.host.external.uploads import Uploads
from agentvisor.protocol.convert import blob_from_message
from agentvisor.protocol.v1 import store_pb2

MOVED_FROM = 16 * 1024
"""Stored bytes from which a value is worth an object of its own where room is short."""
_LARGE = 1024 * 1024
_WRITE_MOVED_FROM = 1024


class What(NamedTuple):
    """What a value is, in the words of errors."""

    kind: str
    """A channel, a save, thread state."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


UNKNOWN = What("channel", "?")


class Incoming:
    """The door for values of one live attempt."""

    def __init__(self, thread: Thread, shelf: BlobShelf, limits: StoreLimits, objects: AttemptObjects | None) -> None:
        self._thread_id = thread.thread_id
        self._store = thread.store
        self._shelf = shelf
        self._limits = limits
        self._objects = objects
        self._largest = limits.max_inline_value if objects is None else limits.max_value
        setting = "storage.max_inline_value" if objects is None else "storage.max_value"
        self.uploads = Uploads(self._largest, setting)

    @property
    def moves(self) -> bool:
        """Whether there is external storage."""
        return self._objects is not None

    @asynccontextmanager
    async def room_for(self, messages: Iterable[store_pb2.Blob | store_pb2.Write]) -> AsyncGenerator[None]:
        """Wait until the host has memory for values that are this large."""
        size = sum(max(one.stored_size, len(one.data)) + one.size for one in messages)
        if self._objects is None or size < _LARGE:
            yield
            return
        async with self._objects.storage.room.taking(size):
            yield

    async def take(
        self, messages: Iterable[store_pb2.Blob], names: Mapping[BlobKey, What], fresh: dict[BlobKey, Blob]
    ) -> None:
        """Add the blobs that are new here to `fresh`, each decoded and found to be what its key says."""
        for message in messages:
            key = BlobKey(message.key)
            what = names.get(key, UNKNOWN)
            if self.has(key, fresh):
                self.uploads.forget(message.upload)
                continue
            self._check_size(str(what), what.name, message.stored_size or len(message.data))
            if message.base and not self.has(BlobKey(message.base), fresh):
                # It may still be in the workflow, which has not yet applied what prunes it: it will be gone.
                raise Corrupt(f"{what} is a difference from a value that is gone")
            data = await self._data(message)
            await self._add(replace(blob_from_message(message), data=data, location="", stored_size=0), fresh)

    async def take_writes(self, message: store_pb2.TaskWrites, fresh: dict[BlobKey, Blob], *, all_out: bool) -> None:
        """Turn the task's large writes into blobs, with `all_out` all that are worth it; the message then names them.

        Without external storage, those that came in parts go into the message after all.
        """
        for write in message.writes:
            what = f"write of task {message.task_id} to channel {write.channel!r}"
            self._check_size(what, write.channel, write.stored_size or len(write.data))
            key = BlobKey(write.key)
            if key and self.has(key, fresh):
                self.uploads.forget(write.upload)
                _name(write, key)
            elif write.upload or self.is_large(write) or (all_out and len(write.data) >= _WRITE_MOVED_FROM):
                await self._take_write(write, fresh)
            elif key:
                raise Corrupt(f"the {what} names a value that thread {self._thread_id} does not have")

    def is_large(self, write: store_pb2.Write) -> bool:
        """Whether a write goes to external storage, room or not."""
        return self.moves and len(write.data) > self._limits.max_inline_value

    async def _take_write(self, write: store_pb2.Write, fresh: dict[BlobKey, Blob]) -> None:
        data = await self._data(write)
        if self._objects is None:
            write.data = data
            for name in ("key", "upload", "stored_size"):
                write.ClearField(name)  # pyright: ignore[reportArgumentType] - the stub wants a literal
            return
        encoding = Encoding.ZSTD if write.size else Encoding.RAW
        blob = Blob(BlobKey(write.key), write.type, encoding, data, None, write.size or len(data), 0)
        if not blob.key:
            blob = replace(blob, key=await self._shelf.key_of(blob))
        if not self.has(blob.key, fresh):
            await self._add(blob, fresh)
        _name(write, blob.key)

    async def move_large(self, fresh: dict[BlobKey, Blob], names: Mapping[BlobKey, What]) -> None:
        """Put those of the fresh values into external storage that are over the inline limit."""
        for key, blob in fresh.items():
            if self._objects is not None and len(blob.data) > self._limits.max_inline_value:
                fresh[key] = there = await self._objects.write(blob, str(names.get(key, UNKNOWN)))
                self._store.add_blob(there)

    async def move_some(self, fresh: dict[BlobKey, Blob], names: Mapping[BlobKey, What], short: int) -> list[Blob]:
        """Put the largest values of the thread into external storage until `short` bytes of its state are saved.

        Changes `fresh`; returns the others that were moved, to be logged.
        """
        moved: list[Blob] = []
        if self._objects is None or short <= 0:
            return moved
        inline = [blob for blob in self._store.blobs.values() if not blob.is_external and self.has(blob.key, fresh)]
        try:
            for blob in sorted(inline, key=lambda one: len(one.data), reverse=True):
                if short <= 0 or len(blob.data) < MOVED_FROM:
                    break
                there = await self._objects.write(blob, str(names.get(blob.key, UNKNOWN)))
                if blob.key in fresh:
                    fresh[blob.key] = there
                    self._store.add_blob(there)
                else:
                    moved.append(there)
                short -= len(blob.data)
        except BaseException:
            self._objects.discard(moved)
            raise
        return moved

    async def _add(self, blob: Blob, fresh: dict[BlobKey, Blob]) -> None:
        await self._shelf.check(blob)
        self._store.add_blob(blob)
        fresh[blob.key] = blob

    async def _data(self, message: store_pb2.Blob | store_pb2.Write) -> bytes:
        if message.upload:
            return await self.uploads.collect(message.upload, message.stored_size)
        return message.data

    def has(self, key: BlobKey, fresh: Mapping[BlobKey, Blob]) -> bool:
        """What nothing needs may be at hand, loaded for a reader, and is gone in the workflow once it has caught up."""
        return self._store.has_blob(key) or key in fresh

    def _check_size(self, what: str, channel: str, size: int) -> None:
        if size > self._largest:
            setting = "max_value" if self.moves else "max_inline_value"
            raise ValueTooLarge(
                f"{what} of thread {self._thread_id} has {size} bytes as stored, the limit is {self._largest} "
                f"(storage.{setting}): store a reference to large data instead"
                + ("" if self.moves else ", or configure storage.url"),
                channel=channel,
                size=str(size),
                limit=str(self._largest),
            )


def _name(write: store_pb2.Write, key: BlobKey) -> None:
    """Let the write be the blob of that key."""
    write.key = key
    for name in ("data", "upload", "stored_size", "size"):
        write.ClearField(name)  # pyright: ignore[reportArgumentType] - the stub wants a literal
