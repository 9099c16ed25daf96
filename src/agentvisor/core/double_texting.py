"""What a run does about those of its thread that have not ended when it comes (`multitask_strategy`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentvisor.core.errors import Conflict
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import CancelAction, Multitask, Run, RunKind, RunSpec

ENDS_OTHERS = {Multitask.INTERRUPT: CancelAction.INTERRUPT, Multitask.ROLLBACK: CancelAction.ROLLBACK}
"""The strategies that end the others, and how."""


def check(thread_id: ThreadId, spec: RunSpec, unfinished: Sequence[Run], check_rollback: Callable[[Run], None]) -> None:
    """Raise `Conflict` where the run may not come now. `check_rollback` raises where a run cannot be rolled back."""
    if not unfinished:
        return
    busy = unfinished[0]
    if spec.kind is not RunKind.AGENT:
        raise Conflict(
            f"thread {thread_id} is busy with run {busy.run_id}: wait for it or cancel it, then write",
            run_id=busy.run_id,
        )
    if spec.multitask is Multitask.REJECT:
        raise Conflict(
            f"thread {thread_id} is busy with run {busy.run_id}, and multitask_strategy is 'reject'",
            run_id=busy.run_id,
        )
    if spec.multitask is Multitask.ROLLBACK:
        for run in unfinished:
            check_rollback(run)
