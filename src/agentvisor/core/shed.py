"""What a compaction leaves out so that the state fits: so far the oldest checkpoints, never a head.

Checkpoints are not dropped in a namespace whose channels may live in their ancestors' writes (LangGraph's delta
channels): there the state would silently change.
"""

from __future__ import annotations

from collections.abc import Callable

from agentvisor.core.ids import Namespace
from agentvisor.core.records import CheckpointKey
from agentvisor.core.store import Store
from agentvisor.core.thread import Thread


def until_it_fits(thread: Thread, encode: Callable[[], bytes], limit: int, now_ms: int) -> bytes | None:
    """The encoded state within `limit` bytes, or None where nothing more can be left out.

    Under a live guest nothing is left out: what it logs next may name any value that the thread had. Where that does
    not fit, its attempt is given up, and the run goes on in a fresh one (S25).
    """
    if thread.active is not None:
        state = encode()
        if len(state) <= limit:
            return state
        thread.give_up_guest(now_ms)
    thread.store.drop_unreferenced_blobs()
    state = encode()
    while len(state) > limit:
        if not (_drop_oldest_checkpoints(thread.store) or _drop_oldest_runs(thread)):
            return None
        state = encode()
    return state


def _drop_oldest_checkpoints(store: Store) -> bool:
    """The older half of what may go."""
    may_go = [
        one.key
        for namespace in store.checkpoints
        if not keeps_state_in_writes(store, namespace)
        for one in store.newest_first(namespace)
        if store.heads[namespace] != one.checkpoint_id
    ]
    may_go.sort(key=lambda key: key.checkpoint_id)
    for key in may_go[: (len(may_go) + 1) // 2]:
        store.drop_checkpoint(key)
    store.drop_unreferenced_blobs()
    return bool(may_go)


def _drop_oldest_runs(thread: Thread) -> bool:
    """All that have ended but the last; at last that one too, with the input and output that it carries."""
    ended = [run.run_id for run in thread.runs.values() if run.status.terminal]
    for run_id in ended[:-1] or ended:
        del thread.runs[run_id]
    return bool(ended)


def keeps_state_in_writes(store: Store, namespace: Namespace) -> bool:
    """Some channel was written that no checkpoint of the namespace holds: its value is in the writes."""
    held = {channel for one in store.checkpoints[namespace].values() for channel in one.channels}
    return any(
        write.idx >= 0 and not write.channel.startswith("__") and write.channel not in held
        for checkpoint_id in store.checkpoints[namespace]
        for task in store.pending(CheckpointKey(namespace, checkpoint_id))
        for write in task.writes
    )
