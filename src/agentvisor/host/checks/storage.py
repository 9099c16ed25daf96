"""Check `storage`: external storage takes an object, gives it back, and deletes it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from secrets import token_hex
from urllib.parse import unquote, urlsplit

from agentvisor.core.errors import AgentVisorError, StorageUnavailable
from agentvisor.host.checks.blocking import apart
from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.config import Config
from agentvisor.host.external.backend import Backend, first_line, open_backend, shown

NAME = "storage"
FOLDER = "agentvisor-doctor/"
"""No thread has objects there: a thread of that id has a folder of its incarnation in between."""
_SIZE = 1 << 16


async def check_storage(config: Config) -> Finding:
    """With an object of its own, in a folder of its own."""
    storage = config.storage
    if storage.url is None:
        seen = f"none is configured: values over {storage.max_inline_value} bytes are refused"
        return ok(NAME, f"{seen} (storage.url lifts that)")
    url = storage.url
    where, parts = shown(url), urlsplit(url)
    if parts.scheme == "file" and not await apart(Path(unquote(parts.path)).exists):
        return warning(NAME, f"{where} does not exist", "a host makes it when it starts; is its disk mounted?")
    try:
        backend = await apart(lambda: open_backend(url, storage.options))
    except AgentVisorError as error:
        return failed(
            NAME, error.message, "see storage.url and storage.options in docs/external-storage.md", type(error)
        )
    except OSError as error:
        return failed(NAME, f"{where}: {error}", "may this user write there?", StorageUnavailable)
    return await _tried(backend, where)


async def _tried(backend: Backend, where: str) -> Finding:
    path, data = f"{FOLDER}{token_hex(8)}", os.urandom(_SIZE)
    steps: tuple[tuple[str, str, Callable[[], Awaitable[object]]], ...] = (
        ("write", "s3:PutObject", lambda: backend.put(path, data)),
        ("read back", "s3:GetObject", lambda: backend.get(path, 0, _SIZE)),
        ("list", "s3:ListBucket", lambda: _listed(backend, path)),
        ("delete", "s3:DeleteObject", lambda: backend.delete([path])),
    )
    for step, right, call in steps:
        try:
            answer = await call()
        except Exception as error:  # noqa: BLE001 - a backend of somebody else's may raise anything
            left = "" if step == "write" else f"; {path} is left there"
            return failed(
                NAME,
                f"{where}: this host could not {step} an object: {first_line(error)}{left}",
                f"a host needs to write, read, list and delete (of S3: {right}, with the other three): "
                "is it read-only, are its credentials right, does it answer?",
                StorageUnavailable,
            )
        if step == "read back" and answer != data:
            return failed(
                NAME, f"{where}: what was read back is not what was written", "is it a store?", StorageUnavailable
            )
        if step == "list" and answer != [path]:
            return failed(
                NAME, f"{where}: a new object is not listed", "what was deleted is found by lists", StorageUnavailable
            )
    return ok(NAME, f"{where}: an object was written, read back, listed and deleted")


async def _listed(backend: Backend, mine: str) -> list[str]:
    return [path async for path in backend.list(FOLDER) if path.startswith(mine)]
