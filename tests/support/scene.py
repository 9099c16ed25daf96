"""Who is on the stage of a fault: threads stay answered for directly, the victim's writes go through the proxy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.support.agents import ScriptedGuests
from tests.support.host import EngineHost, Knobs, Role, engine_host
from tests.support.proxy import TemporalProxy
from tests.support.waiting import until

from agentvisor.core.ids import ThreadId
from agentvisor.core.thread import Thread
from agentvisor.host.threads import Threads


class Scene(NamedTuple):
    other: EngineHost
    """Answers for threads, and reads; nothing comes between it and the server."""
    victim: EngineHost
    """Takes attempts, through the proxy."""


@asynccontextmanager
async def scene(
    temporal: str, proxy: TemporalProxy, queue: str, *, knobs: Knobs | None = None, guests: ScriptedGuests | None = None
) -> AsyncGenerator[Scene]:
    """Both hosts on one task queue."""
    async with (
        engine_host(temporal, queue, name="other", knobs=knobs, role=Role.WORKFLOWS) as other,
        engine_host(proxy.address, queue, name="victim", knobs=knobs, guests=guests, role=Role.ATTEMPTS) as victim,
    ):
        yield Scene(other, victim)


async def until_no_attempt(threads: Threads, thread_id: ThreadId) -> None:
    """The thread's attempt is over, as its workflow sees it."""

    async def over() -> bool:
        return (await threads.get(thread_id)).active is None

    await until(over)


async def until_compacted(threads: Threads, thread_id: ThreadId, times: int = 1) -> Thread:
    """The thread has continued as new that often, and the attempt is at work again or over."""

    async def compacted() -> bool:
        return (await threads.get(thread_id)).compactions >= times

    await until(compacted)
    return await threads.get(thread_id)


async def make_compaction_due(threads: Threads, thread_id: ThreadId, events: int = 40) -> None:
    """Fill the execution's history without touching the store."""
    for number in range(events // 4):
        await threads.update_metadata(thread_id, {"number": number})
