"""What becomes of an update of a thread's state: it is no run of the agent, and it ends what waited before it."""

from __future__ import annotations

from agentvisor.core.ids import RunId
from agentvisor.core.runs import Run, RunStatus
from agentvisor.core.store import Store

KEPT = 16
"""Finished updates whose answer is kept, for the caller who waits for it."""


def finished(runs: dict[RunId, Run], store: Store, update: Run, *, asks: bool) -> None:
    """An update has ended. A graph asks anew where it goes on from it: what it had asked waits no more.

    `asks`: whether the root's head holds a question still, as it does where a subgraph's state was updated.
    """
    if update.status is RunStatus.SUCCESS and not asks:
        store.interrupts.noted = {}
    ended = [run for run in runs.values() if run.is_update and run.status.terminal]
    for run in ended[:-KEPT]:
        del runs[run.run_id]


def last_run(runs: dict[RunId, Run]) -> Run | None:
    """The run of an agent, or the update, that came last; an update that failed has changed nothing."""
    return next(
        (
            run
            for run in reversed(runs.values())
            if (run.is_agent and not run.rolled_back) or (run.is_update and run.status is RunStatus.SUCCESS)
        ),
        None,
    )
