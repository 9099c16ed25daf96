"""What a compaction leaves out, in a fixed order, until the state fits; and what it never leaves out.

The order is docs/limits.md's. Heads, writes to delta channels and control writes (errors, interrupts, answers) are
state: they stay, and where they do not fit the thread ends loudly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from agentvisor.core.ids import ROOT, CheckpointId, Namespace
from agentvisor.core.pruning import drop_checkpoints, drop_namespace
from agentvisor.core.records import CheckpointKey
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread


class ShedStep(Enum):
    """The steps, in their order; each is counted by its name."""

    STALE_HISTORY = "stale_history"
    """Older checkpoints of namespaces that do not run under the root's head."""
    STALE_NAMESPACES = "stale_namespaces"
    """Those namespaces as a whole."""
    OLD_WRITES = "old_writes"
    """Pending writes of checkpoints that are no heads."""
    HEAD_WRITES = "head_writes"
    """Pending writes of heads, the largest first."""
    HISTORY = "history"
    """Checkpoints of any namespace down to its head, the oldest first."""
    RUNS = "runs"
    """Finished runs with their outputs."""


@dataclass(slots=True)
class Shedding:
    """How it went: the encoded state, or None where it cannot fit; and what each step has left out."""

    state: bytes | None = None
    size: int = 0
    """Of the state in the end, whether it fits or not."""
    left_out: dict[ShedStep, int] = field(default_factory=dict[ShedStep, int])


_COUNTS = 256
"""Bytes that the counts themselves may take."""


def until_it_fits(thread: Thread, encode: Callable[[], bytes], limit: int, now_ms: int) -> Shedding:
    """Leave out as little as it takes to encode the thread in `limit` bytes.

    Under a live guest nothing is left out: what it logs next may name any value that the thread had. Where that does
    not fit, its attempt is given up, and the run goes on in a fresh one (S25).
    """
    result = Shedding()
    if thread.active is not None:
        state = encode()
        if len(state) <= limit:
            result.state, result.size = state, len(state)
            return result
        thread.give_up_guest(now_ms)
    thread.prune_runs()
    thread.store.drop_unreferenced_blobs()
    state = encode()
    for step, leave_out in _STEPS.items():
        if len(state) <= limit - _COUNTS:
            break
        freed = 0
        for some in leave_out(thread):
            result.left_out[step] = result.left_out.get(step, 0) + 1
            freed += some
            if freed >= len(state) - limit + _COUNTS:  # by our own count: encoding tells for sure
                state, freed = encode(), 0
                if len(state) <= limit - _COUNTS:
                    break
        if freed:
            state = encode()
    for step, count in result.left_out.items():
        thread.left_out[step.value] = thread.left_out.get(step.value, 0) + count
    if result.left_out:
        state = encode()  # with those counts
    result.size = len(state)
    result.state = state if len(state) <= limit else None
    return result


def _stale(store: Store) -> list[Namespace]:
    """Namespaces of subgraphs that do not run under the root's head, those of the oldest super-steps first."""
    head = store.heads.get(ROOT)
    by_age = sorted(store.roots.items(), key=lambda item: item[1])
    return [namespace for namespace, root_id in by_age if ":" in namespace and root_id != head]


def _stale_history(thread: Thread) -> Iterator[int]:
    store = thread.store
    for namespace in _stale(store):
        older = [one for one in store.checkpoints[namespace] if one != store.heads[namespace]]
        if older:
            yield _freed(store, lambda namespace=namespace, older=older: drop_checkpoints(store, namespace, older))


def _stale_namespaces(thread: Thread) -> Iterator[int]:
    store = thread.store
    for namespace in _stale(store):
        yield _freed(store, lambda namespace=namespace: drop_namespace(store, namespace))


def _old_writes(thread: Thread) -> Iterator[int]:
    store = thread.store
    heads = {CheckpointKey(namespace, head) for namespace, head in store.heads.items()}
    for key in sorted((key for key in store.tasks if key not in heads), key=lambda key: key.checkpoint_id):
        if key.checkpoint_id in store.checkpoints.get(key.namespace, {}):
            yield from _drop_writes(store, key)


def _head_writes(thread: Thread) -> Iterator[int]:
    store = thread.store
    sized = [
        (sum(write.stored_bytes for write in task.writes.values() if write.may_go), key, task_id)
        for key, tasks in store.tasks.items()
        if store.heads.get(key.namespace) == key.checkpoint_id
        for task_id, task in tasks.items()
    ]
    for size, key, task_id in sorted(sized, reverse=True):
        if size:
            _drop_writes_of(store, key, task_id)
            yield size


def _drop_writes(store: Store, key: CheckpointKey) -> Iterator[int]:
    before = sum(one.stored_bytes for one in store.pending(key))
    for task_id in list(store.tasks[key]):
        _drop_writes_of(store, key, task_id)
    freed = before - sum(one.stored_bytes for one in store.pending(key))
    if freed:
        yield freed


def _drop_writes_of(store: Store, key: CheckpointKey, task_id: str) -> None:
    """A task whose writes are gone runs again, all of it: so all its regular writes go together."""
    tasks = store.tasks[key]
    task = tasks[task_id]
    task.writes = {idx: write for idx, write in task.writes.items() if not write.may_go}
    if not task.writes:
        del tasks[task_id]
    if not tasks:
        del store.tasks[key]


def _history(thread: Thread) -> Iterator[int]:
    store = thread.store
    old = [
        one.key
        for namespace, group in store.checkpoints.items()
        for one in group.values()
        if one.checkpoint_id != store.heads[namespace]
    ]
    for key in sorted(old, key=lambda key: (key.checkpoint_id, key.namespace)):
        doomed: list[CheckpointId] = [key.checkpoint_id]
        yield _freed(store, lambda key=key, doomed=doomed: drop_checkpoints(store, key.namespace, doomed))


def _runs(thread: Thread) -> Iterator[int]:
    """All that have ended but the last; at last that one too, with the input and output that it carries."""
    ended = [run for run in thread.runs.values() if run.status.terminal]
    for run in (*ended[:-1], *ended[-1:]):
        del thread.runs[run.run_id]
        yield len(run.spec.body) + len(run.output) + 200


def _freed(store: Store, leave_out: Callable[[], None]) -> int:
    before = store.stored_bytes()
    leave_out()
    return before - store.stored_bytes()


_STEPS: dict[ShedStep, Callable[[Thread], Iterator[int]]] = {
    ShedStep.STALE_HISTORY: _stale_history,
    ShedStep.STALE_NAMESPACES: _stale_namespaces,
    ShedStep.OLD_WRITES: _old_writes,
    ShedStep.HEAD_WRITES: _head_writes,
    ShedStep.HISTORY: _history,
    ShedStep.RUNS: _runs,
}
"""In their order. Each leaves out one thing at a time and says how many bytes that was."""
