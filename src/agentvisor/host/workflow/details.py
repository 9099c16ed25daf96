"""The thread's state as Markdown, for Temporal's UI (S30)."""

from __future__ import annotations

from agentvisor.core.answering import known
from agentvisor.core.ids import ROOT
from agentvisor.core.thread import Thread


def current_details(thread: Thread) -> str:
    """Status, head checkpoint, what comes next, and the latest runs with their attempts."""
    store = thread.store
    lines = [f"**{thread.status.value}**" + (f": {thread.failure}" if thread.failure else ""), ""]
    head = store.get(ROOT)
    if head is not None:
        checkpoint = head.checkpoint
        projection = store.projections.get(checkpoint.key)
        upcoming = ", ".join(projection.next) if projection and projection.next else "nothing"
        lines += [
            f"- checkpoint `{checkpoint.checkpoint_id}` of {checkpoint.ts or 'unknown time'}",
            f"- channels: {', '.join(sorted(name for name, key in checkpoint.channels.items() if key)) or 'none'}",
            f"- next: {upcoming}; pending writes of {len(head.pending)} tasks",
        ]
    waiting = known(store)
    if waiting:
        lines.append(f"- waits for an answer: {', '.join(f'`{one.id}` ({one.kind})' for one in waiting.values())}")
    count = sum(len(group) for group in store.checkpoints.values())
    lines.append(f"- {count} checkpoints in {len(store.checkpoints)} namespaces, {len(store.blobs)} blobs")
    if store.state.entries:
        lines.append(f"- {len(store.state.entries)} entries of thread state")
    for run in list(thread.runs.values())[-3:]:
        lines.append(f"- run `{run.run_id}` of {run.spec.agent}: {run.status.name.lower()}")
        for attempt in run.attempts[-5:]:
            ended = attempt.reason if attempt.ending else "live"
            lines.append(f"  - attempt {attempt.attempt} on {attempt.host_id or 'no host yet'}: {ended}")
    return "\n".join(lines)
