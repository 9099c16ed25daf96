"""When a thread's time to live is over, and what that means for who comes then."""

from __future__ import annotations

from agentvisor.core.errors import Unavailable
from agentvisor.core.lifetimes import Strategy
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus


def expires_at_ms(thread: Thread) -> int | None:
    """When the thread's time is over, as things stand; None: it is not counted now."""
    lifetime = thread.lifetime
    if lifetime is None or thread.active is not None or thread.notices:
        return None
    if lifetime.strategy is Strategy.KEEP_LATEST and (thread.failure or thread.swept_at_ms >= thread.used_at_ms):
        return None  # there is nothing to do, or nothing more since the last time
    status = thread.status
    if status is ThreadStatus.BUSY or (status is ThreadStatus.INTERRUPTED and not lifetime.while_waiting):
        return None
    return thread.used_at_ms + lifetime.ttl_ms


def begin(thread: Thread) -> None:
    """The thread's time is over: until it is gone, nothing is accepted that would be lost with it."""
    thread.sweeping = True
    thread.expiring = thread.lifetime is not None and thread.lifetime.strategy is Strategy.DELETE


def swept(thread: Thread, now_ms: int) -> None:
    """What had to be done was done; the next time counts from the next use."""
    thread.sweeping = thread.expiring = False
    thread.swept_at_ms = now_ms


def check_alive(thread: Thread) -> None:
    """`Unavailable` for what comes to a thread that is being deleted."""
    if thread.expiring:
        raise Unavailable(
            f"thread {thread.thread_id} is being deleted, for its time to live (ttl) is over: try again, with another "
            "thread or once it is gone",
            thread_id=thread.thread_id,
        )
