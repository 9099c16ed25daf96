"""Whose turn it is among a thread's runs: in order of acceptance, a delayed one when it is due."""

from __future__ import annotations

from collections.abc import Iterable

from agentvisor.core.runs import Run


def next_run(runs: Iterable[Run], now_ms: int) -> Run | None:
    """The run that has begun, else the one that was due first; None: none is due."""
    waiting = [run for run in runs if not run.status.terminal]
    if not any(run.spec.after_ms for run in waiting):
        return next(iter(waiting), None)
    begun = next((run for run in waiting if run.attempts), None)
    due = (run for run in waiting if not run.spec.after_ms or run.due_at_ms <= now_ms)
    return begun or min(due, key=lambda run: run.due_at_ms, default=None)


def next_due_ms(runs: Iterable[Run]) -> int | None:
    """When the first of the delayed runs is due that have not begun; None: there is none."""
    waiting = (run for run in runs if run.spec.after_ms and not run.status.terminal and not run.attempts)
    return min((run.due_at_ms for run in waiting), default=None)
