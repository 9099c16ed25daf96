"""Reads the threads of a list: one that cannot be read does not hide the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from agentvisor.core.errors import AgentVisorError, Corrupt, IncompatibleState, Internal, NotFound, Sealed, Unavailable
from agentvisor.core.ids import ThreadId

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.http")

OF_ONE = (Sealed, Corrupt, IncompatibleState)
"""Matters of each thread, also where all of a list have them."""
UNREADABLE = (*OF_ONE, Unavailable, Internal)

_Read = TypeVar("_Read")


async def each_thread(
    named: Sequence[ThreadId], read: Callable[[ThreadId], Awaitable[_Read]], at_a_time: int
) -> list[_Read | AgentVisorError | None]:
    """What was read of each, in their order; None: it was deleted since it was listed.

    An error stands for a thread that cannot be read, such as one whose workflow task fails; that is logged. Where none
    can be had it is raised, unless each has a key that is not here, or is damaged.
    """
    gate = asyncio.Semaphore(at_a_time)

    async def one(thread_id: ThreadId) -> _Read | AgentVisorError | None:
        async with gate:
            try:
                return await read(thread_id)
            except NotFound:
                return None
            except UNREADABLE as error:
                return error

    found = await asyncio.gather(*map(one, named))
    failed = {at: each for at, each in enumerate(found) if isinstance(each, AgentVisorError)}
    others = [each for each in failed.values() if not isinstance(each, OF_ONE)]
    if others and all(each is None or at in failed for at, each in enumerate(found)):
        raise others[0]
    for at, error in failed.items():
        log.warning("thread_not_readable", thread=named[at], error=error.message)
    return found
