"""What a session service needs of a thread's state: `agentvisor.thread_state` gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

SCOPE = "adk"
"""The name space of all keys here."""


class Entry(Protocol):
    """A value and the revision that it was read at; of an appended list, all its items."""

    @property
    def value(self) -> object: ...

    @property
    def revision(self) -> int: ...


class ThreadStore(Protocol):
    """Keys of one thread. A wrong `expected_revision` raises `Conflict`; 0 means that there must be nothing yet."""

    async def aentry(self, key: str, *, scope: str = "", thread_id: str | None = None) -> Entry | None: ...

    async def aupdate(
        self, key: str, changes: Mapping[str, object], *, scope: str = "", thread_id: str | None = None
    ) -> int: ...

    async def aappend(
        self,
        key: str,
        item: object,
        *,
        expected_revision: int | None = None,
        scope: str = "",
        thread_id: str | None = None,
    ) -> int: ...

    async def adelete(self, key: str, *, scope: str = "", thread_id: str | None = None) -> bool: ...

    async def akeys(self, prefix: str = "", *, scope: str = "", thread_id: str | None = None) -> list[str]: ...


class ThreadKeys:
    """The keys of ADK's sessions in one thread."""

    def __init__(self, store: ThreadStore, thread_id: str | None) -> None:
        self._store = store
        self._thread_id = thread_id

    async def entry(self, key: str) -> Entry | None:
        return await self._store.aentry(key, scope=SCOPE, thread_id=self._thread_id)

    async def update(self, key: str, changes: Mapping[str, object]) -> int:
        return await self._store.aupdate(key, changes, scope=SCOPE, thread_id=self._thread_id)

    async def append(self, key: str, item: object, expected_revision: int | None = None) -> int:
        return await self._store.aappend(
            key, item, expected_revision=expected_revision, scope=SCOPE, thread_id=self._thread_id
        )

    async def delete(self, key: str) -> None:
        await self._store.adelete(key, scope=SCOPE, thread_id=self._thread_id)

    async def keys(self, prefix: str) -> list[str]:
        return await self._store.akeys(prefix, scope=SCOPE, thread_id=self._thread_id)
