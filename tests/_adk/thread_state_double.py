"""Thread state in this process, by the same rules as a thread's: for tests that need no host."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentvisor.client.strict_json import dump
from agentvisor.core.errors import Conflict


@dataclass(frozen=True)
class Entry:
    value: Any
    revision: int


class ThreadStateDouble:
    """Values are JSON text: nobody shares an object with it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[Any, int]] = {}
        self._revision = 0
        self.written = 0
        """Bytes, all in all."""
        self.writes = 0
        self.left: int | None = None
        """After so many writes the process dies."""

    async def aentry(self, key: str, *, scope: str = "", thread_id: str | None = None) -> Entry | None:
        found = self._kept.get((scope, key))
        if found is None:
            return None
        value, revision = found
        return Entry([json.loads(one) for one in value] if isinstance(value, list) else json.loads(value), revision)

    async def aupdate(
        self,
        key: str,
        changes: Mapping[str, object],
        *,
        expected_revision: int | None = None,
        scope: str = "",
        thread_id: str | None = None,
    ) -> int:
        given = dump(dict(changes), "changes")
        value, _ = self._kept.get((scope, key), ("{}", 0))
        return self._change(scope, key, expected_revision, json.dumps(json.loads(value) | json.loads(given)), given)

    async def aappend(
        self,
        key: str,
        item: object,
        *,
        expected_revision: int | None = None,
        scope: str = "",
        thread_id: str | None = None,
    ) -> int:
        given = dump(item, "item")
        value, _ = self._kept.get((scope, key), ([], 0))
        return self._change(scope, key, expected_revision, [*value, given], given)

    async def adelete(
        self, key: str, *, expected_revision: int | None = None, scope: str = "", thread_id: str | None = None
    ) -> bool:
        self._check(scope, key, expected_revision)
        return self._kept.pop((scope, key), None) is not None

    async def akeys(self, prefix: str = "", *, scope: str = "", thread_id: str | None = None) -> list[str]:
        return sorted(key for of, key in self._kept if of == scope and key.startswith(prefix))

    def _change(self, scope: str, key: str, expected: int | None, value: object, given: bytes) -> int:
        self._check(scope, key, expected)
        if self.left is not None:
            if self.left == 0:
                raise Died
            self.left -= 1
        self._revision += 1
        self.writes += 1
        self.written += len(given)
        self._kept[scope, key] = (value, self._revision)
        return self._revision

    def _check(self, scope: str, key: str, expected: int | None) -> None:
        revision = self._kept.get((scope, key), (None, 0))[1]
        if expected is not None and expected != revision:
            raise Conflict(f"{key} is at revision {revision}, not {expected}")


class Died(BaseException):
    """The process ends here: no `except Exception` notices."""
