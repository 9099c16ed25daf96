"""Whether and when a run begins again after an attempt was lost, and how much of its time it has then."""

from __future__ import annotations

from agentvisor.core.runs import CONSEQUENCES, Attempt, Ending, Follow, Run

_MOST_DOUBLINGS = 40
"""A budget of a million restarts must not make numbers of a million digits."""


def restarts_used(run: Run) -> int:
    """Endings that counted against the budget so far; with `reset_on_progress`, since an attempt that got on."""
    counted = run.attempts
    if run.spec.restart.reset_on_progress:
        counted = counted[max((index for index, one in enumerate(counted) if one.progressed), default=0) :]
    return sum(1 for one in counted if one.ending and CONSEQUENCES[one.ending].follow is Follow.RESTART)


def restart_delay_ms(run: Run, now_ms: int) -> int | None:
    """How long to wait before the next attempt, or None where the policy allows no more.

    Called after an attempt with a restartable ending was recorded. `max_elapsed` counts time without a live attempt:
    from the failed attempt's last commit (the host's clock, carried in its log) where it is known.
    """
    policy = run.spec.restart
    used = restarts_used(run)
    if used > policy.max_attempts:
        return None
    idle = sum(_idle_ms(run, index) for index in range(len(run.attempts) - 1))
    idle += max(0, now_ms - _last_sign_ms(run.attempts[-1], now_ms))
    delay = min(policy.initial_backoff_ms * 2 ** min(used - 1, _MOST_DOUBLINGS), policy.max_backoff_ms)
    return None if idle + delay > policy.max_elapsed_ms else delay


def time_left_ms(run: Run) -> int:
    """The time budget of the attempt that begins: of a fresh one the whole, of one handed over what is left.

    What passed between two hosts does not count: nobody worked.
    """
    left = run.spec.timeout_ms
    for one in reversed(run.attempts[:-1]):
        if one.ending is not Ending.HOST_STOPPED:
            break
        left -= max(0, one.ended_at_ms - (one.started_at_ms or one.ended_at_ms))
    return max(0, left)


def _idle_ms(run: Run, index: int) -> int:
    """Time between an attempt's last commit and the start of the next one."""
    ended, following = run.attempts[index], run.attempts[index + 1]
    began = max(following.started_at_ms, following.scheduled_at_ms)
    return max(0, began - _last_sign_ms(ended, began))


def _last_sign_ms(attempt: Attempt, unknown: int) -> int:
    """When an attempt's last commit was, on Temporal's clock as far as can be known.

    No attempt starts before it was scheduled: one that says so has a host whose clock is slow. Taken at its word, every
    loss on it would look older than the budget.
    """
    slow = max(0, attempt.scheduled_at_ms - attempt.started_at_ms) if attempt.started_at_ms else 0
    return attempt.committed_at_ms + slow if attempt.committed_at_ms else attempt.ended_at_ms or unknown
