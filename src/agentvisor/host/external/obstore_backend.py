"""Files, S3, Google Cloud Storage and Azure, by obstore."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from obstore.store import LocalStore, from_url

from agentvisor.core.errors import InvalidInput

if TYPE_CHECKING:  # obstore's types exist for type checkers only
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config

# Waiting for a store that is down is ours: it ends when the attempt does, and its errors say more.
_RETRY: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=10)}
_CLIENT: ClientConfig = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=120)}

_CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "proxy_ca_certificate", "timeout"}
)
"""Options that are the HTTP client's, and not of one kind of store."""

_DELETES = 500
"""Objects that one request deletes; S3 takes 1,000."""

MARKER = ".agentvisor-storage"
"""A file in the folder of a store of files: without it the folder is not the one that the host began with."""
_MARKED = "AgentVisor keeps values of threads here. Without this file it takes the folder for a disk that is away.\n"
_NOWHERE = "agentvisor-looks-whether-the-store-is-there/"


class ObstoreBackend:
    """A `Backend` on any of obstore's stores.

    A missing object is told from a missing store: a disk that is not mounted, a bucket that does not exist.
    """

    def __init__(self, store: ObjectStore, folder: Path | None = None) -> None:
        self._store = store
        self._folder = folder
        """Of a store of files, whose writes must still be brought to the disk."""

    async def put(self, path: str, data: bytes) -> None:
        await self._folder_is_there()
        # One request: a multipart upload that is cut off leaves parts behind that cost money and that nobody sees.
        try:
            await self._store.put_async(path, data, use_multipart=False)
        except FileNotFoundError as error:
            raise OSError(f"the store is not there: {error}") from error
        if self._folder is not None:
            await asyncio.to_thread(_sync, self._folder, self._folder / path)
            await self._folder_is_there()  # else it went to what is below the disk that was mounted there

    async def get(self, path: str, start: int, length: int) -> bytes:
        try:
            return await self._part(path, start, length)
        except FileNotFoundError:
            await self._store_is_there()
            raise

    async def _part(self, path: str, start: int, length: int) -> bytes:
        try:
            return bytes(await self._store.get_range_async(path, start=start, length=length))
        except FileNotFoundError:
            raise
        except Exception:
            # A range that the object does not have is an error like any other.
            if (await self._store.head_async(path))["size"] < start + length:
                return b""
            raise

    async def delete(self, paths: Sequence[str]) -> None:
        for first in range(0, len(paths), _DELETES):
            some = list(paths[first : first + _DELETES])
            try:
                await self._store.delete_async(some)
            except FileNotFoundError:
                await self._store_is_there()
                # Files, GCS and Azure say so where one is gone, and may have left the others.
                for path in some:
                    with suppress(FileNotFoundError):
                        await self._store.delete_async(path)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        try:
            async for some in self._store.list(prefix):  # pyright: ignore[reportUnknownMemberType] - needs pyarrow's types
                for one in some:
                    yield one["path"]
        except FileNotFoundError as error:
            raise OSError(f"the store is not there: {error}") from error
        await self._folder_is_there()

    async def _store_is_there(self) -> None:
        """`OSError` where not only the object is missing."""
        if self._folder is not None:
            await self._folder_is_there()
        else:
            async for _ in self.list(_NOWHERE):
                break

    async def _folder_is_there(self) -> None:
        if self._folder is not None and not await asyncio.to_thread((self._folder / MARKER).is_file):
            raise OSError(f"{self._folder} is not the folder that it was, {MARKER} is missing: is its disk mounted?")


def open_obstore(url: str, options: Mapping[str, str]) -> ObstoreBackend:
    """The store that a URL names. Options are obstore's own names, on top of AWS_*, GOOGLE_* and AZURE_* variables."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        if parts.netloc or not folder.is_absolute():
            raise InvalidInput(f"storage.url {url!r}: a folder is written file:///absolute/path", field="storage.url")
        # Folders go with their last object: their names hold thread ids.
        store = LocalStore(folder, automatic_cleanup=True, mkdir=True)
        if not (folder / MARKER).exists():
            (folder / MARKER).write_text(_MARKED)
        return ObstoreBackend(store, folder)
    client = {**_CLIENT, **{name: value for name, value in options.items() if name in _CLIENT_OPTIONS}}
    if any(value.startswith("http://") for value in options.values()):
        client["allow_http"] = "true"  # whoever writes such an endpoint means it
    config = cast("S3Config", {name: value for name, value in options.items() if name not in _CLIENT_OPTIONS})
    return ObstoreBackend(
        from_url(url, config=config, client_options=cast("ClientConfig", client), retry_config=_RETRY)
    )


def _sync(root: Path, file: Path) -> None:
    """Bring a new file, and the folders that name it, to the disk: obstore leaves that to the system's leisure."""
    _sync_one(file)
    for folder in file.parents:
        _sync_one(folder)
        if folder == root:
            break


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
