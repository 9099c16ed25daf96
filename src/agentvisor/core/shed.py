"""What a compaction leaves out, in a fixed order, until the state fits; and what it never leaves out.

The order is that of docs/history-limits.md. Heads, writes to delta channels and control writes (errors, interrupts,
answers) are state: they stay, and where they do not fit the thread ends loudly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from agentvisor.core.ids import ROOT
from agentvisor.core.pruning import drop_checkpoints, drop_namespace
from agentvisor.core.records import CheckpointKey
from agentvisor.core.rollback import MADE_SMALLER
from agentvisor.core.runs import Run
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread
from agentvisor.core.weighing import stale_namespaces


class ShedStep(Enum):
    """The steps, in their order; each is counted by its name."""

    RUN_BODIES = "run_bodies"
    """Inputs and outputs of finished runs, the oldest first; not those of the last one."""
    STALE_HISTORY = "stale_history"
    """Older checkpoints of namespaces that do not run under the root's head."""
    STALE_NAMESPACES = "stale_namespaces"
    """Those namespaces as a whole."""
    OLD_WRITES = "old_writes"
    """Pending writes of checkpoints that are no heads."""
    HEAD_WRITES = "head_writes"
    """Pending writes of heads, and of checkpoints that have not come, the largest first."""
    HISTORY = "history"
    """Checkpoints of any namespace down to its head, the oldest first."""
    RUNS = "runs"
    """Finished runs as a whole, the oldest first; of the last one its input and output."""


@dataclass(slots=True)
class Shedding:
    """How it went: the encoded state, or None where it cannot fit; and what each step has left out."""

    state: bytes | None = None
    size: int = 0
    """Of the state in the end, whether it fits or not."""
    left_out: dict[ShedStep, int] = field(default_factory=dict[ShedStep, int])


_COUNTS = 512
"""Bytes that the counts themselves may take."""


def until_it_fits(thread: Thread, encode: Callable[[], bytes], limit: int, now_ms: int) -> Shedding:
    """Leave out as little as it takes to encode the thread in `limit` bytes.

    Under a live guest nothing is left out but runs that ended long ago: what it logs next may name any value that the
    thread had. Where that does not fit, its attempt is given up, and the run goes on in a fresh one (S25).
    """
    thread.prune_runs()
    if thread.active is not None:
        state = encode()
        if len(state) > limit and thread.before is not None:
            thread.before.forget(thread.store, MADE_SMALLER)  # costs the run's rollback, and no writer knows of it
            state = encode()
        if len(state) <= limit:
            return Shedding(state, len(state))
        thread.give_up_guest(now_ms)
    if thread.before is not None and len(encode()) > limit:
        thread.before.forget(thread.store, MADE_SMALLER)
    thread.store.drop_unreferenced_blobs()
    left_out: dict[ShedStep, int] = {}
    state = encode()
    for step, leave_out in _STEPS.items():
        excess = len(state) - (limit - _COUNTS)
        if excess <= 0:
            break
        freed = 0
        for some in leave_out(thread):
            left_out[step] = left_out.get(step, 0) + 1
            freed += some
            if freed >= excess:  # by our own count: encoding tells for sure
                state, freed = encode(), 0
                excess = len(state) - (limit - _COUNTS)
                if excess <= 0:
                    break
        if freed:
            state = encode()
    for step, count in left_out.items():
        thread.left_out[step.value] = thread.left_out.get(step.value, 0) + count
    if left_out:
        state = encode()  # with those counts
    return Shedding(state if len(state) <= limit else None, len(state), left_out)


def _run_bodies(thread: Thread) -> Iterator[int]:
    for run in thread.ended_runs()[:-1]:
        yield from _bare(run)


def _bare(run: Run) -> Iterator[int]:
    if not run.bare:
        run.bare = True
        yield len(run.spec.body) + len(run.output)


def _stale_history(thread: Thread) -> Iterator[int]:
    store = thread.store
    for namespace in stale_namespaces(store, store.heads.get(ROOT)):
        older = [one for one in store.checkpoints[namespace] if one != store.heads[namespace]]
        if older:
            before = store.freed
            drop_checkpoints(store, namespace, older)
            yield store.freed - before


def _stale_namespaces(thread: Thread) -> Iterator[int]:
    store = thread.store
    for namespace in stale_namespaces(store, store.heads.get(ROOT)):
        before = store.freed
        drop_namespace(store, namespace)
        yield store.freed - before


def _old_writes(thread: Thread) -> Iterator[int]:
    store = thread.store
    old = [
        key
        for key in store.tasks
        if key.checkpoint_id in store.checkpoints.get(key.namespace, {})
        and store.heads[key.namespace] != key.checkpoint_id
    ]
    for key in sorted(old, key=lambda key: (key.checkpoint_id, key.namespace)):
        freed = sum(_drop_writes(store, key, task_id) for task_id in list(store.tasks[key]))
        if freed:
            yield freed


def _head_writes(thread: Thread) -> Iterator[int]:
    store = thread.store
    sized = [
        (sum(write.stored_bytes for write in task.writes.values() if write.may_go), key, task_id)
        for key, tasks in store.tasks.items()
        if store.heads.get(key.namespace) == key.checkpoint_id
        or key.checkpoint_id in store.orphans.get(key.namespace, ())
        for task_id, task in tasks.items()
    ]
    for size, key, task_id in sorted(sized, reverse=True):
        if size:
            yield _drop_writes(store, key, task_id)


def _drop_writes(store: Store, key: CheckpointKey, task_id: str) -> int:
    """A task whose writes are gone runs again, all of it: so all its regular writes go together.

    Unless it wrote to a delta channel: that stays, and with a part of its writes it would count as finished.
    """
    tasks = store.tasks[key]
    task = tasks[task_id]
    if any(write.is_state and write.idx >= 0 for write in task.writes.values()):
        return 0
    freed = store.drop_writes(task, [idx for idx, write in task.writes.items() if write.may_go])
    if not task.writes:
        del tasks[task_id]
    if not tasks:
        store.forget(key)
    return freed


def _history(thread: Thread) -> Iterator[int]:
    store = thread.store
    old = [
        one.key
        for namespace, group in store.checkpoints.items()
        for one in group.values()
        if one.checkpoint_id != store.heads[namespace]
    ]
    for key in sorted(old, key=lambda key: (key.checkpoint_id, key.namespace)):
        before = store.freed
        drop_checkpoints(store, key.namespace, [key.checkpoint_id])
        yield store.freed - before


def _runs(thread: Thread) -> Iterator[int]:
    """The last one stays, since the thread's status is its."""
    ended = thread.ended_runs()
    for run in ended[:-1]:
        del thread.runs[run.run_id]
        yield len(run.spec.body) + len(run.output) + 200
    for run in ended[-1:]:
        yield from _bare(run)


_STEPS: dict[ShedStep, Callable[[Thread], Iterator[int]]] = {
    ShedStep.RUN_BODIES: _run_bodies,
    ShedStep.STALE_HISTORY: _stale_history,
    ShedStep.STALE_NAMESPACES: _stale_namespaces,
    ShedStep.OLD_WRITES: _old_writes,
    ShedStep.HEAD_WRITES: _head_writes,
    ShedStep.HISTORY: _history,
    ShedStep.RUNS: _runs,
}
"""In their order. Each leaves out one thing at a time and says how many bytes that was."""
