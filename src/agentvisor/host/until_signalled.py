"""Runs a host's work until a signal asks for its end; a second one ends the drain, others change nothing."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine

import structlog

from agentvisor.host.drain import Drain

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.host")


async def until_signalled(
    work: Coroutine[None, None, None], drain: Drain, stopping: Callable[[], None] = lambda: None
) -> None:
    """Return once the work has ended. `stopping` is called with the first of SIGINT and SIGTERM, before the drain."""
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stopper(task, drain, stopping))
    try:
        await task
    except asyncio.CancelledError:
        log.info("host_stopped")


def _stopper(task: asyncio.Task[None], drain: Drain, stopping: Callable[[], None]) -> Callable[[], None]:
    def stop() -> None:
        if not drain.asked:
            drain.asked = True
            stopping()
            task.cancel()
        else:
            drain.force()

    return stop
