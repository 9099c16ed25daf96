"""The object store of a host: calls that wait for a store which is down, and say in the end what failed where."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from agentvisor.core.errors import Corrupt, Fenced, StorageUnavailable
from agentvisor.core.ids import BlobKey, ThreadId
from agentvisor.core.records import Blob
from agentvisor.host.external.backend import Backend, first_line, shown
from agentvisor.host.external.places import folder_of
from agentvisor.host.external.room import Room

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")

Result = TypeVar("Result")

_PAUSE = 0.1
_PAUSE_MOST = 5.0
_ROOM = 256 * 1024 * 1024
"""Bytes of large values in memory at a time, those of all attempts of the host together."""


def _never() -> bool:
    return False


class ExternalStorage:
    """A backend, with patience: `StorageUnavailable` once it has not answered for `retry_for` seconds."""

    def __init__(self, backend: Backend, url: str, *, retry_for: float) -> None:
        self._backend = backend
        self._retry_for = retry_for
        self.url = shown(url)
        self.room = Room(_ROOM)

    def of(self, thread_id: ThreadId, incarnation: str) -> ThreadObjects:
        """The objects of one thread."""
        return ThreadObjects(self, thread_id, incarnation)

    async def write(self, path: str, data: bytes, what: str, given_up: Callable[[], bool]) -> None:
        await self._patiently(lambda: self._backend.put(path, data), f"{what} could not be written", given_up)

    async def read(self, path: str, start: int, length: int, what: str) -> bytes:
        try:
            data = await self._patiently(lambda: self._backend.get(path, start, length), f"{what} could not be read")
        except FileNotFoundError as error:
            raise Corrupt(f"{what} is not in external storage any more: {self.url} has no object {path}") from error
        if len(data) != length:
            raise Corrupt(f"{what} is damaged: of {self.url}, object {path} is too short")
        return data

    async def delete(self, paths: Sequence[str], what: str) -> None:
        await self._patiently(lambda: self._backend.delete(paths), f"{what} could not be deleted")

    async def list(self, prefix: str, what: str) -> list[str]:
        async def listed() -> list[str]:
            return [path async for path in self._backend.list(prefix)]

        return await self._patiently(listed, f"{what} could not be listed")

    async def _patiently(
        self, call: Callable[[], Awaitable[Result]], failed: str, given_up: Callable[[], bool] = _never
    ) -> Result:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._retry_for, _PAUSE
        while True:
            try:
                async with asyncio.timeout_at(max(until, loop.time() + _PAUSE)):
                    return await call()
            except FileNotFoundError as missing:
                if failed.endswith("read"):
                    raise
                cause: Exception = missing  # the bucket or the folder: it may come
            except Exception as error:  # noqa: BLE001 - a backend of somebody else's may raise anything
                cause = error
            if given_up():
                raise Fenced(f"{failed}: the attempt has ended") from cause
            if loop.time() + pause >= until:
                raise StorageUnavailable(
                    f"{failed}: external storage {self.url} has not answered for {self._retry_for:g} s "
                    f"(storage.retry_for): {first_line(cause)}. Nothing of it was stored, and what was stored before "
                    "is safe: see that the store answers and lets the host in, then start a new run",
                    url=self.url,
                ) from cause
            log.warning("storage_again", what=failed, url=self.url, error=first_line(cause))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _PAUSE_MOST)


class ThreadObjects:
    """The values of one thread that are in the object store."""

    def __init__(self, storage: ExternalStorage, thread_id: ThreadId, incarnation: str) -> None:
        self._storage = storage
        self._thread_id = thread_id
        self._folder = folder_of(thread_id, incarnation)

    async def write(self, name: str, data: bytes, what: str, given_up: Callable[[], bool] = _never) -> None:
        """Store an object durably. `what` names it in errors: a channel, a write."""
        await self._storage.write(self._folder + name, data, f"{what} of thread {self._thread_id}", given_up)

    async def read(self, blob: Blob, start: int = 0, length: int | None = None) -> bytes:
        """A part of a blob's data; all of it by default. `Corrupt` where the object is gone or too short."""
        length = blob.stored_size - start if length is None else length
        path = self._folder + blob.location
        return await self._storage.read(path, start, length, f"value {_short(blob.key)} of thread {self._thread_id}")

    async def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no error."""
        if names:
            paths = [self._folder + name for name in names]
            await self._storage.delete(paths, f"values of thread {self._thread_id}")

    async def names(self) -> list[str]:
        """The names of all objects that are there now."""
        paths = await self._storage.list(self._folder, f"values of thread {self._thread_id}")
        return [path.removeprefix(self._folder) for path in paths]

    async def delete_all(self) -> None:
        """Delete every object of the thread, those that nothing names included."""
        await self.delete(await self.names())


def _short(key: BlobKey) -> str:
    return key.hex()[:16]
