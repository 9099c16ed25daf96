"""The object store of a host: calls that wait for a store which is down, and say in the end what failed where."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from agentvisor.core.errors import AgentVisorError, Corrupt, Fenced, Internal, Sealed, StorageUnavailable
from agentvisor.core.records import Blob
from agentvisor.host.codec import objects
from agentvisor.host.codec.objects import ObjectCipher
from agentvisor.host.codec.refused import Refused, why
from agentvisor.host.external.backend import Backend, first_line, shown
from agentvisor.host.external.places import Names
from agentvisor.host.external.room import Room
from agentvisor.host.metrics import REFUSED_PAYLOADS

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")

Result = TypeVar("Result")

Verify = Callable[[Blob, bytes], Awaitable[None]]
"""Compares the bytes of a blob's object with its key; `Corrupt` where they are others."""

_PAUSE = 0.1
_PAUSE_MOST = 5.0
_ROOM = 256 * 1024 * 1024
"""Bytes of large values in memory at a time, those of all attempts of the host together."""


def _never() -> bool:
    return False


class _Gone(Exception):
    """The backend answers, and has no such object."""


@dataclass(slots=True)
class Patience:
    """How long reads that belong together wait for the store; once it did not answer one, the others do not wait."""

    seconds: float
    over: bool = False


class ExternalStorage:
    """A backend, with patience: `StorageUnavailable` once it has not answered for `retry_for` seconds."""

    def __init__(
        self,
        backend: Backend,
        url: str,
        *,
        retry_for: float,
        patience: Patience | None = None,
        cipher: ObjectCipher | None = None,
    ) -> None:
        self._backend = backend
        self._cipher = cipher
        self._retry_for = retry_for if patience is None else min(retry_for, patience.seconds)
        self._patience = patience
        self.url = shown(url)
        self.room = Room(_ROOM)
        self._tasks: set[asyncio.Task[None]] = set()

    def within(self, patience: Patience) -> ExternalStorage:
        """The same store for reads that wait no longer than that."""
        return ExternalStorage(
            self._backend, self.url, retry_for=self._retry_for, patience=patience, cipher=self._cipher
        )

    def names(self, folder: str) -> Names:
        """Paths for new objects in a thread's folder: encrypted ones, where this host encrypts."""
        return Names(folder, objects.SUFFIX if self._encrypts else "")

    @property
    def _encrypts(self) -> bool:
        return self._cipher is not None and self._cipher.encrypts

    async def write(self, path: str, data: bytes, what: str, given_up: Callable[[], bool] = _never) -> None:
        """Store an object durably, under one of `names`; `what` names it in errors: a channel, of which thread."""
        stored = data
        if path.endswith(objects.SUFFIX):
            stored = await asyncio.to_thread(self._ciphering(path).sealed, path, data)
        elif self._encrypts:
            raise Internal(f"{what} was about to be stored in the clear, as {path}, by a host that encrypts")
        await self._patiently(lambda: self._backend.put(path, stored), f"{what} could not be written", given_up)

    async def read(self, blob: Blob, start: int = 0, length: int | None = None) -> bytes:
        """A part of a blob's data; all of it by default. `Corrupt` where the object is gone, too short or damaged."""
        length = blob.stored_size - start if length is None else length
        what = f"value {blob.key.hex()[:16]} ({blob.location})"
        try:
            if blob.location.endswith(objects.SUFFIX):
                return await self._opened(blob, start, length, what)
            data = await self._got(blob.location, start, length, what)
        except _Gone as gone:
            raise Corrupt(f"{what} is gone from external storage {self.url}") from gone
        if len(data) != length:
            raise Corrupt(f"{what} is damaged in external storage {self.url}: it is too short")
        return data

    async def _got(self, path: str, start: int, length: int, what: str) -> bytes:
        return await self._patiently(
            lambda: self._backend.get(path, start, length), f"{what} could not be read", reading=True
        )

    async def _opened(self, blob: Blob, start: int, length: int, what: str) -> bytes:
        try:
            return await self._deciphered(blob, start, length, what)
        except (Sealed, Corrupt) as error:
            REFUSED_PAYLOADS.labels("storage", why(error)).inc()
            raise

    async def _deciphered(self, blob: Blob, start: int, length: int, what: str) -> bytes:
        path, size = blob.location, blob.stored_size
        cipher, span = self._ciphering(path), objects.span(start, length, size)
        if span.first == 0:
            got = await self._got(path, 0, span.start + span.length, what)
            head, pieces = got[: objects.HEAD], got[objects.HEAD :]
        else:
            head = await self._got(path, 0, objects.HEAD, what)
            pieces = await self._got(path, span.start, span.length, what)
        plain = await asyncio.to_thread(cipher.opened, path, head, pieces, span.first, size)
        skipped = start - span.first * objects.PIECE
        data = plain[skipped : skipped + length]
        if len(data) != length:
            raise Corrupt(f"{what} is damaged in external storage {self.url}: it is too short")
        return data

    def _ciphering(self, path: str) -> ObjectCipher:
        if self._cipher is None:
            raise Refused.UNKNOWN_KEY.sealed(
                f"{path} is encrypted, and this host has no encryption.keys: add those of the host that wrote it"
            )
        return self._cipher

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no error."""
        if paths:
            await self._patiently(lambda: self._backend.delete(paths), f"{paths[0]} could not be deleted")

    async def below(self, folder: str) -> list[str]:
        """The paths of all objects that are in a folder now."""

        async def listed() -> list[str]:
            return [path async for path in self._backend.list(folder)]

        return await self._patiently(listed, f"{folder} could not be listed")

    async def delete_below(self, folder: str) -> int:
        """Delete every object of a folder, those that nothing names included; how many they were."""
        found = await self.below(folder)
        await self.delete(found)
        return len(found)

    async def copied(self, blob: Blob, path: str, verify: Verify) -> Blob:
        """The blob as one of another thread, with an object of its own at `path`. `Corrupt`: no damage is copied."""
        async with self.room.taking(blob.stored_size + blob.size):
            data = await self.read(blob)
            await verify(blob, data)
            await self.write(path, data, f"a copy of {blob.location}")
        return replace(blob, location=path)

    def begin(self, what: str, work: Coroutine[object, object, object]) -> None:
        """Do it in the background: what fails is left for a later sweep."""
        task = asyncio.create_task(self._logged(what, work), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, grace: float) -> None:
        """Give what is going on in the background a last while."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _logged(self, what: str, work: Coroutine[object, object, object]) -> None:
        try:
            await work
        except AgentVisorError as error:
            log.warning("storage_left_for_later", what=what, error=error.message)
        except Exception:
            log.exception("storage_work_crashed", what=what)

    async def _patiently(
        self,
        call: Callable[[], Awaitable[Result]],
        failed: str,
        given_up: Callable[[], bool] = _never,
        *,
        reading: bool = False,
    ) -> Result:
        if self._patience is not None and self._patience.over:
            raise StorageUnavailable(f"{failed}: external storage {self.url} does not answer", url=self.url)
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._retry_for, _PAUSE
        while True:
            try:
                async with asyncio.timeout_at(max(until, loop.time() + _PAUSE)):
                    return await call()
            except FileNotFoundError as error:
                if reading:
                    raise _Gone from error
                cause: Exception = error  # the bucket or the folder is missing: it may come
            except Exception as error:  # noqa: BLE001 - a backend of somebody else's may raise anything
                cause = error
            if given_up():
                raise Fenced(f"{failed}: the attempt has ended") from cause
            if loop.time() + pause >= until:
                if self._patience is not None:
                    self._patience.over = True
                raise StorageUnavailable(
                    f"{failed}: external storage {self.url} has not answered for {self._retry_for:g} s "
                    f"(storage.retry_for): {first_line(cause)}. What was acknowledged before is safe: see that the "
                    "store answers and lets the host in, then start a new run",
                    url=self.url,
                ) from cause
            log.warning("storage_again", what=failed, url=self.url, error=first_line(cause))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _PAUSE_MOST)
