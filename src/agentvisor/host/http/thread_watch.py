"""Sees that a thread has changed, by the length of its history in Temporal: a look costs no workflow task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from agentvisor.core.errors import Unavailable
from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.http.services import Services

_LOOK = 0.1
_LOOK_MOST = 2.0
"""Seconds between two looks: a thread on which nothing happens is looked at less and less often."""


async def changes(services: Services, thread_id: ThreadId) -> AsyncGenerator[Thread]:
    """The thread, now and whenever it has changed; what came and went between two looks shows in its runs.

    `NotFound` once it is deleted. An outage of Temporal is waited out.
    """
    seen, pause = "", _LOOK
    while True:
        with suppress(Unavailable):
            version = await services.threads.version(thread_id)
            if version != seen:
                thread = await services.threads.get(thread_id)
                seen, pause = version, _LOOK
                yield thread
                continue
        # A run that begins here, or a reader's own change, is seen at once.
        with suppress(TimeoutError):
            await asyncio.wait_for(services.events.stirred(thread_id), pause)
            pause = _LOOK
            continue
        pause = min(pause * 1.5, _LOOK_MOST)
