"""The thread's state as Markdown, for Temporal's UI (S30).

The UI puts the text into a URL, so it is short; it shows nested lists on one line and tables without gaps, so there are
none. What others have named or said stands in code (markdown.py); of what is asked the beginning, of values nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from agentvisor.core import answering, asking
from agentvisor.core.expiry import expires_at_ms
from agentvisor.core.ids import ROOT
from agentvisor.core.interrupts import Interrupt
from agentvisor.core.lifetimes import Strategy
from agentvisor.core.records import CheckpointTuple
from agentvisor.core.runs import Attempt, Ending, Run
from agentvisor.core.saves import is_save
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.workflow.markdown import code, codes, number, size

LONGEST = 6_000
"""Characters of it: a URL of what they become is taken by every server on the way."""
_WARNING = (
    "Cancel runs and delete threads with AgentVisor, not on this page: a workflow that is terminated takes its thread "
    "with it, and one that is reset loses what came after."
)
_WELL = (Ending.COMPLETED, Ending.PAUSED)
_INTERRUPT = "__interrupt__"
_QUESTIONS = 5
_RUNS = 3
_ATTEMPTS = 4
_NAMES = 8


def current_details(thread: Thread) -> str:
    """Status, what waits for an answer, the head checkpoint, the latest runs with their attempts, sizes, commands."""
    lines = [*_status(thread), *_waiting(thread), *_checkpoint(thread), *_runs(thread), *_sizes(thread)]
    ending = _commands(thread)
    left = LONGEST - sum(len(line) + 1 for line in ending) - 4
    kept: list[str] = []
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            kept += ["", "…"]
            break
        kept.append(line)
    return "\n".join([*kept, *ending])


def _status(thread: Thread) -> Iterator[str]:
    last = thread.last_agent_run
    words = [f"**{thread.status.value}**"]
    if last is not None:
        words.append(f"agent {code(last.spec.agent)}")
    if thread.owner:
        words.append(f"owner {code(thread.owner)}")
    yield " · ".join(words)
    if thread.failure:
        yield f"\nIt has failed, and takes no runs: {code(thread.failure, 300)}"
    ends = None if thread.lifetime is None else expires_at_ms(thread)
    if thread.lifetime is not None and ends is not None:
        deletes = thread.lifetime.strategy is Strategy.DELETE
        yield f"\nUnless it is used, {'it is deleted' if deletes else 'all but its heads is pruned'} at {_time(ends)}."


# --- what waits ------------------------------------------------------------------------------------------------------


def _waiting(thread: Thread) -> Iterator[str]:
    taken = answering.taken(thread.runs)
    asked = [
        *_of_graph(thread),
        *(_asked(one) for one in answering.known(thread.store).values() if one.id not in taken),
    ]
    if not asked:
        return
    yield from _heading("Waits for an answer")
    yield from (f"- {one}" for one in asked[:_QUESTIONS])
    if len(asked) > _QUESTIONS:
        yield f"- and {len(asked) - _QUESTIONS} more"


def _asked(one: Interrupt) -> str:
    words = [f"{code(one.kind)} {code(one.id, 64)}"]
    if one.value:
        words.append(code(one.value.decode(errors="replace"), 120))
    return " · ".join([*words, *_when(one)])


def _when(one: Interrupt) -> Iterator[str]:
    if one.created_at_ms:
        yield f"asked {_time(one.created_at_ms)}"
    if one.terms.deadline_ms:
        follows = "then it is cancelled" if one.terms.default_answer is None else "then its default answer is given"
        yield f"deadline {_time(one.terms.deadline_ms)}, {follows}"


def _of_graph(thread: Thread) -> Iterator[str]:
    """What a graph asks is in its checkpoint's writes, which nobody here reads: who asks, and what was noted of it."""
    head = thread.store.get(ROOT)
    if head is None or thread.status is not ThreadStatus.INTERRUPTED or asking.has_closed(thread.store):
        return
    at = asking.head_of(thread.store)
    noted = [one for asks in asking.of_all(thread.store) for one in asks.noted(at).values()]
    yield from map(_asked, noted)
    names = _task_names(thread, head)
    for task in head.pending:
        asks = any(write.channel == _INTERRUPT for write in task.writes) and all(write.idx < 0 for write in task.writes)
        if asks and not any(task.task_id.encode() in one.belongs_to for one in noted):
            name = names.get(task.task_id)
            who = f"node {code(name)}" if name else f"task {code(task.task_id)}"
            yield f"question of {who} · asked {_time(thread.state_updated_at_ms)}"


def _task_names(thread: Thread, head: CheckpointTuple) -> dict[str, str]:
    projection = thread.store.projections.get(head.checkpoint.key)
    return {} if projection is None else {task.id: task.name for task in projection.tasks}


# --- what it holds ---------------------------------------------------------------------------------------------------


def _checkpoint(thread: Thread) -> Iterator[str]:
    store = thread.store
    head = store.get(ROOT)
    if head is not None:
        checkpoint = head.checkpoint
        projection = store.projections.get(checkpoint.key)
        yield from _heading("Checkpoint")
        yield f"- {code(checkpoint.checkpoint_id)}" + (f" of {code(checkpoint.ts, 40)}" if checkpoint.ts else "")
        yield f"- next: {codes(list(projection.next), _NAMES) if projection and projection.next else 'nothing'}"
        yield f"- channels: {codes(sorted(one for one, key in checkpoint.channels.items() if key), _NAMES) or 'none'}"
        if head.pending:
            yield f"- pending writes of {number(len(head.pending), 'task')}"
    others = [one for one in store.heads if one != ROOT]
    graphs, saves = [one for one in others if not is_save(one)], [one for one in others if is_save(one)]
    for named, group in (("of subgraphs", graphs), ("saves", saves)):
        if group:
            yield from [] if head is not None else _heading("Checkpoints")
            yield f"- {named}: {codes(sorted(group), 3)}"


def _sizes(thread: Thread) -> Iterator[str]:
    # All that is here is not weighed: that costs more than the rest, and this is done with every fold.
    store, limit, carried = thread.store, thread.settings.state_bytes, thread.unsheddable_bytes()
    count = sum(len(group) for group in store.checkpoints.values())
    stored = sum(len(blob.data) for blob in store.blobs.values())
    yield from _heading("Size")
    yield f"- {size(carried)} that no compaction can leave out, {100 * carried / limit:.1f} % of `storage.max_state`"
    if count or store.blobs:
        kept = f"{number(count, 'checkpoint')} in {number(len(store.checkpoints), 'namespace')}"
        yield f"- {kept}; {number(len(store.blobs), 'value')}, stored in {size(stored)}"
    outside = [blob.stored_size for blob in store.blobs.values() if blob.is_external]
    if outside:
        yield f"- in external storage: {number(len(outside), 'value')}, {size(sum(outside))}"
    if len(store.state.entries):
        yield f"- {number(len(store.state.entries), 'entry', 'entries')} of thread state"
    if len(store.effects):
        yield f"- {number(len(store.effects), 'effect')}, of {store.effects.intended} the outcome is not known yet"
    if thread.compactions:
        left = "; ".join(f"{count} {step}" for step, count in thread.left_out.items())
        yield f"- {number(thread.compactions, 'compaction')}" + (f", left out: {code(left, 160)}" if left else "")
    if thread.notices:
        yield f"- {number(len(thread.notices), 'webhook')} to be told"


# --- runs ------------------------------------------------------------------------------------------------------------


def _runs(thread: Thread) -> Iterator[str]:
    runs = [run for run in reversed(thread.runs.values()) if not run.rolled_back]
    if not runs:
        return
    yield from _heading("Latest runs")
    for run in runs[:_RUNS]:
        yield _run(run)
        if len(run.attempts) > _ATTEMPTS:
            yield f"- … {number(len(run.attempts) - _ATTEMPTS, 'earlier attempt')}"
        yield from (_attempt(run, one) for one in run.attempts[-_ATTEMPTS:])
    if len(runs) > _RUNS:
        yield f"- … {number(len(runs) - _RUNS, 'earlier run')}"


def _run(run: Run) -> str:
    what = "update" if run.is_update else f"agent {code(run.spec.agent)}"
    if run.is_session:
        what = "session of a client"
    status = run.status.name.lower() + (", waits for an answer" if run.paused else "")
    words = [f"{code(run.run_id, 64)} **{status}**", what, f"accepted {_time(run.created_at_ms)}"]
    if run.cancel_requested and not run.status.terminal:
        words.append("is to be cancelled")
    if run.error_message:
        words.append(f"{code(run.error_type or 'error')}: {code(run.error_message, 160)}")
    return "- " + " · ".join(words)


def _attempt(run: Run, one: Attempt) -> str:
    words = [f"↳ attempt {one.attempt}", f"host {code(one.host_id)}" if one.host_id else "no host yet"]
    if one.ending is None:
        words.append(f"live since {_time(one.started_at_ms)}" if one.started_at_ms else "scheduled")
    else:
        why = "" if one.ending in _WELL or one.reason == run.error_message else f": {code(one.reason, 160)}"
        words.append(one.ending.name.lower().replace("_", " ") + why)
        if one.started_at_ms and one.ended_at_ms:
            words.append(f"took {max(0, one.ended_at_ms - one.started_at_ms) / 1000:.1f} s")
    return "- " + " · ".join(words)


# --- what to do next -------------------------------------------------------------------------------------------------


def _commands(thread: Thread) -> list[str]:
    named = thread.thread_id  # of characters that mean nothing to a shell nor in a URL (core/ids.py)
    return [
        *_heading("Go on"),
        "```",
        f"agentvisor threads show {named}",
        f"curl localhost:8090/threads/{named}/history",
        f"curl localhost:8090/threads/{named}/interrupts",
        "```",
        _WARNING,
    ]


def _heading(text: str) -> Iterator[str]:
    yield from ("", f"### {text}", "")


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
