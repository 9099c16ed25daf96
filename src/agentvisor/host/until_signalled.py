"""Runs a host's work until a signal asks for its end; a second one ends the drain, others change nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine

import structlog

from agentvisor.host.drain import Drain

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.host")


async def until_signalled(
    work: Coroutine[None, None, None], drain: Drain, patience: float, stopping: Callable[[], None] = lambda: None
) -> None:
    """Return once the work has ended.

    Args:
        work: a host, from its start to its end in order; cancelled with the first of SIGINT and SIGTERM.
        drain: what runs have before the host gives them back.
        patience: seconds that the end may take besides the drain. A Temporal that neither answers nor refuses would
            hold it for minutes; after them this process ends as it stands, and what it started sees that and ends too.
        stopping: called with the first signal, before the drain.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stopper(task, drain, patience, stopping))
    try:
        await task
    except asyncio.CancelledError:
        log.info("host_stopped")


def _stopper(
    task: asyncio.Task[None], drain: Drain, patience: float, stopping: Callable[[], None]
) -> Callable[[], None]:
    def stop() -> None:
        if not drain.asked:
            drain.asked = True
            stopping()
            task.cancel()
            _end_after(drain.seconds + patience)
        else:
            drain.force()

    return stop


def _end_after(seconds: float) -> None:
    """A thread's timer: it counts also where the event loop has ended, and waits for threads of others."""
    timer = threading.Timer(seconds, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    log.warning("host_stop_cut_short")
    os._exit(1)
