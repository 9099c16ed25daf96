"""What a thread is doing, as others see it: idle, busy, waiting for an answer, or failed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from agentvisor.core import answering, asking, updates
from agentvisor.core.ids import ROOT, RunId
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.store import Store

_INTERRUPT = -3
"""Index of the write that holds a task's questions (LangGraph's WRITES_IDX_MAP)."""


class ThreadStatus(Enum):
    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


def status_of(runs: dict[RunId, Run], store: Store) -> ThreadStatus:
    """Of a thread that has not failed."""
    if unfinished(runs.values()):
        return ThreadStatus.BUSY
    last = updates.last_run(runs)
    if last is None or last.is_update:
        return ThreadStatus.INTERRUPTED if root_asks(store) or _has_next(store) else ThreadStatus.IDLE
    if last.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
        return ThreadStatus.ERROR
    asks = last.paused or bool(answering.known(store)) or bool(asking.graph_asker(store))
    # A cancelled run left work: the root's head has something next.
    stopped_short = last.status is RunStatus.INTERRUPTED and _has_next(store)
    return ThreadStatus.INTERRUPTED if asks or stopped_short else ThreadStatus.IDLE


def unfinished(runs: Iterable[Run]) -> list[Run]:
    """Runs of agents that wait or run."""
    return [run for run in runs if not run.status.terminal and run.is_agent]


def root_asks(store: Store) -> bool:
    """A thread without runs, a copy or one that a client outside writes, waits for an answer."""
    head = store.get(ROOT)
    if head is None:
        return False
    # As LangGraph reads writes: a task has finished once it wrote anything but control writes.
    return any(
        any(one.idx == _INTERRUPT for one in task.writes) and all(one.idx < 0 for one in task.writes)
        for task in head.pending
    )


def _has_next(store: Store) -> bool:
    head = store.get(ROOT)
    projection = store.projections.get(head.checkpoint.key) if head else None
    return projection is not None and bool(projection.next)
