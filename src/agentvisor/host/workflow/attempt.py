"""The activity that is an attempt, as a thread's workflow schedules it."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.attempts import Active
    from agentvisor.core.ids import ThreadId
    from agentvisor.core.runs import Run
    from agentvisor.protocol.v1 import run_pb2

RUN_ACTIVITY = "agentvisor.run"

_TAKE_SOON = timedelta(seconds=10)
"""How long a task may wait on the queue of one host, which may be gone."""
END_GRACE = timedelta(seconds=60)
"""The host itself ends a run at its time budget and says so; Temporal would not tell it from a crash."""


def start_attempt(
    thread_id: ThreadId, run: Run, active: Active, now_ms: int, *, host_waits_ms: int
) -> workflow.ActivityHandle[bytes]:
    """Schedule the attempt; its host waits so long before it begins."""
    task = run_pb2.RunTask(
        thread_id=thread_id,
        run_id=run.run_id,
        attempt=active.attempt,
        attach=active.attaching,
        heartbeat_timeout_ms=run.spec.heartbeat_timeout_ms,
        delay_ms=host_waits_ms,
    )
    own_queue = active.host_queue or run.spec.host_queue
    return workflow.start_activity(
        RUN_ACTIVITY,
        task.SerializeToString(),
        task_queue=own_queue or None,
        schedule_to_start_timeout=_TAKE_SOON if own_queue else None,
        start_to_close_timeout=timedelta(milliseconds=max(0, active.deadline_ms - now_ms)) + END_GRACE,
        heartbeat_timeout=timedelta(milliseconds=run.spec.heartbeat_timeout_ms),
        retry_policy=RetryPolicy(maximum_attempts=1),
        # WAITCANCEL: the attempt may write until its activity has closed.
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=f"{run.spec.agent} run {run.run_id} attempt {active.attempt}",
    )
