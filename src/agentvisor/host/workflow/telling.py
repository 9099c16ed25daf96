"""Tells webhooks of the ends of runs, beside the thread's other work: no run waits for them, and no compaction.

A notice is in the thread's state from the end of its run until it was heard or given up. Where the workflow continues
as new meanwhile, it is told again: a webhook hears of a run at least once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from agentvisor.core.ids import RunId
    from agentvisor.core.thread import Thread
    from agentvisor.host.workflow.hearing import noted
    from agentvisor.protocol.threads import notice_to_message

WEBHOOK_ACTIVITY = "agentvisor.webhook"

RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(minutes=10),
    maximum_attempts=24,
)
"""About two and a half hours."""

_ONE_TRY = timedelta(seconds=90)
"""External storage may be slow to give the values that are told."""

_SILENCE = timedelta(seconds=10)
"""After which a host that was sending is given up."""


def webhook_queue(task_queue: str) -> str:
    """Where the hosts of a deployment take notices: a host that is full of runs takes them all the same."""
    return f"{task_queue}:webhooks"


async def tell(thread: Callable[[], Thread], now_ms: Callable[[], int]) -> None:
    """Tell of each end as it comes. Never raises."""
    telling: dict[RunId, asyncio.Task[None]] = {}

    async def one(run_id: RunId) -> None:
        message = notice_to_message(thread().notices[run_id], thread().thread_id)
        try:
            await workflow.execute_activity(
                WEBHOOK_ACTIVITY,
                message.SerializeToString(),
                task_queue=webhook_queue(workflow.info().task_queue),
                start_to_close_timeout=_ONE_TRY,
                heartbeat_timeout=_SILENCE,
                retry_policy=RETRIES,
                summary=f"webhook of run {run_id}",
            )
        except ActivityError as error:
            noted("warning", "webhook_given_up", thread=thread().thread_id, run=run_id, error=str(error.cause))
        thread().heard(run_id, now_ms())
        del telling[run_id]

    while True:
        await workflow.wait_condition(lambda: bool(thread().notices.keys() - telling.keys()))
        for run_id in [run_id for run_id in thread().notices if run_id not in telling]:
            telling[run_id] = asyncio.create_task(one(run_id))
