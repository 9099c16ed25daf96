"""How much the tasks of a super-step have written, kept up as they write: a wide fan-out asks once for each task."""

from __future__ import annotations

from typing import NamedTuple

from agentvisor.core.records import CheckpointKey
from agentvisor.core.store import Store

_KEYS = 256
"""Checkpoints that are kept up at a time; what was forgotten is counted anew."""


class Size(NamedTuple):
    stored_bytes: int
    writes: int


class PendingSizes:
    """Sizes of the writes under checkpoints, by task."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[CheckpointKey, dict[str, Size]] = {}
        self._sums: dict[CheckpointKey, Size] = {}
        self._touched: dict[CheckpointKey, set[str]] = {}

    def beside(self, key: CheckpointKey, task_id: str) -> Size:
        """Of what the other tasks have written under a checkpoint."""
        if key not in self._tasks:
            self._count_all(key)
        for touched in list(self._touched.get(key, ())):
            before = self._tasks[key].get(touched, _NOTHING)
            self._count(key, touched)
            if self._tasks[key][touched] != before:  # else it may be on its way into the store
                self._touched[key].discard(touched)
        everything, own = self._sums[key], self._tasks[key].get(task_id, _NOTHING)
        return Size(everything.stored_bytes - own.stored_bytes, everything.writes - own.writes)

    def will_write(self, key: CheckpointKey, task_id: str) -> None:
        """This task's writes are admitted: they are counted when the next one asks."""
        if key in self._tasks:
            self._touched.setdefault(key, set()).add(task_id)

    def _count_all(self, key: CheckpointKey) -> None:
        if len(self._tasks) >= _KEYS:
            self._tasks.clear()
            self._sums.clear()
            self._touched.clear()
        self._tasks[key], self._sums[key] = {}, _NOTHING
        for task_id in self._store.tasks.get(key, {}):
            self._count(key, task_id)

    def _count(self, key: CheckpointKey, task_id: str) -> None:
        task = self._store.tasks.get(key, {}).get(task_id)
        writes = task.writes.values() if task is not None else ()
        now = Size(sum(one.stored_bytes for one in writes), len(writes))
        before, everything = self._tasks[key].get(task_id, _NOTHING), self._sums[key]
        self._tasks[key][task_id] = now
        self._sums[key] = Size(
            everything.stored_bytes + now.stored_bytes - before.stored_bytes,
            everything.writes + now.writes - before.writes,
        )


_NOTHING = Size(0, 0)
