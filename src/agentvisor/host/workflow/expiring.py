"""Has a thread swept whose time to live is over, beside its other work: no run waits for that.

A thread without a time to live makes no command for it, so that threads of before replay as they were. A thread cannot
delete itself: an activity does, and the last thing that it deletes is the execution that asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from agentvisor.core import expiry
    from agentvisor.core.thread import Thread
    from agentvisor.host.workflow.hearing import noted
    from agentvisor.protocol.v1 import run_pb2

EXPIRE_ACTIVITY = "agentvisor.expire"

RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=10)
)
"""Until it is done: a thread that nobody can delete would refuse its callers for ever."""

_ONE_TRY = timedelta(minutes=5)
"""External storage may have very many objects of a thread."""

_SILENCE = timedelta(seconds=10)
"""After which a host that was at it is given up."""


def upkeep_queue(task_queue: str) -> str:
    """Where the hosts of a deployment take what nobody waits for: a host that is full of runs takes it all the same."""
    return f"{task_queue}:upkeep"


async def sweep(thread: Callable[[], Thread], now_ms: Callable[[], int]) -> None:
    """Whenever the thread's time is over, do what its strategy says."""
    while True:
        await workflow.wait_condition(lambda: expiry.expires_at_ms(thread()) is not None)
        at = expiry.expires_at_ms(thread())
        if at is None:
            continue
        if at > now_ms():
            await _until_other(thread, at, now_ms)
            continue
        await _swept(thread(), now_ms)
        expiry.swept(thread(), now_ms())


async def _until_other(thread: Callable[[], Thread], at_ms: int, now_ms: Callable[[], int]) -> None:
    """Return at that time; before it where a use of the thread, or another time to live, has made it another."""
    timeout = timedelta(milliseconds=at_ms - now_ms() + 1)
    try:
        await workflow.wait_condition(lambda: expiry.expires_at_ms(thread()) != at_ms, timeout=timeout)
    except TimeoutError:
        return


async def _swept(thread: Thread, now_ms: Callable[[], int]) -> None:
    if thread.lifetime is None:
        return
    expiry.begin(thread)
    info = workflow.info()
    task = run_pb2.ExpireThread(
        thread_id=thread.thread_id,
        execution=info.run_id,
        owner=thread.owner,
        strategy=run_pb2.ExpiryStrategy.ValueType(thread.lifetime.strategy),
    )
    try:
        await workflow.execute_activity(
            EXPIRE_ACTIVITY,
            task.SerializeToString(),
            task_queue=upkeep_queue(info.task_queue),
            start_to_close_timeout=_ONE_TRY,
            heartbeat_timeout=_SILENCE,
            retry_policy=RETRIES,
            summary=f"time to live of thread {thread.thread_id} is over",
        )
    except ActivityError as error:
        # Another time to live passes before it is tried again.
        noted("warning", "thread_not_swept", thread=thread.thread_id, error=str(error.cause))
        thread.used_at_ms = now_ms()
