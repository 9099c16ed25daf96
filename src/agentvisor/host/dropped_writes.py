"""Saying that regular pending writes are dropped, with the limit that was hit."""

from __future__ import annotations

from typing import NamedTuple

import structlog

from agentvisor.core.ids import ThreadId
from agentvisor.core.records import CheckpointKey, TaskWrites
from agentvisor.host.metrics import DROPPED_WRITES

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.storage")


class Hit(NamedTuple):
    """A setting, the size that it compares, which is over it, and its value."""

    setting: str
    size: int
    limit: int
    unit: str = "bytes"


class DroppedWrites:
    """What one attempt's thread has dropped."""

    def __init__(self, thread_id: ThreadId, *, says: bool) -> None:
        self._thread_id = thread_id
        self._says = says
        self._dropping: set[CheckpointKey] = set()

    def note(self, writes: TaskWrites, hit: Hit) -> None:
        """Count, and log once for each super-step."""
        if not self._says:
            return
        DROPPED_WRITES.inc()
        if writes.key in self._dropping:
            return
        self._dropping.add(writes.key)
        log.warning(
            "pending_writes_dropped",
            thread=self._thread_id,
            namespace=writes.namespace,
            checkpoint=writes.checkpoint_id,
            task=writes.task_id,
            setting=hit.setting,
            size=hit.size,
            limit=hit.limit,
        )
