"""CrewAI's locks, as files beside what they guard: in the temporary folder each run would leave some for ever."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path

from crewai_core.lock_store import set_lock_backend
from portalocker import Lock


def keep_locks_in(folder: Path) -> None:
    """Until the process ends. A user who has CrewAI lock by Redis goes on doing so."""
    if not os.environ.get("REDIS_URL"):
        set_lock_backend(_locks_of(folder))


def _locks_of(folder: Path) -> Callable[..., AbstractContextManager[None]]:
    @contextmanager
    def locked(name: str, *, timeout: float) -> Generator[None]:
        folder.mkdir(parents=True, exist_ok=True)
        with Lock(folder / f"{sha256(name.encode()).hexdigest()}.lock", timeout=timeout):
            yield

    return locked
