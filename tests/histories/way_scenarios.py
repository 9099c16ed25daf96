"""Lives of threads whose runs give way: interrupted, undone, deleted, delayed; and whose webhooks are told of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

from temporalio import activity
from temporalio.exceptions import ApplicationError
from tests.histories.store_scenarios import Scenario
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.waiting import until
from tests.support.writing import control_write, put, task_write

from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import CancelAction, Multitask
from agentvisor.host.worker import telling
from agentvisor.host.workflow.telling import WEBHOOK_ACTIVITY

Tell = Callable[[bytes], Awaitable[None]]


async def stays(agent: ScriptedAgent) -> None:
    """Writes, and stays until it is cancelled."""
    for request in (control_write(0, str(agent.task.run_id)), task_write(0, "more"), put(agent.attempt)):
        await agent.call(request)
    await agent.cancelled.wait()
    raise RuntimeError("cancelled")


async def ends(agent: ScriptedAgent) -> None:
    await agent.call(put(0))


@asynccontextmanager
async def host(temporal: str, tell: Tell | None = None) -> AsyncGenerator[EngineHost]:
    queue, guests = f"q-{uuid4().hex[:8]}", ScriptedGuests(stays=stays, ends=ends)
    async with engine_host(temporal, queue, knobs=Knobs(compact_events=40), guests=guests) as one:
        if tell is None:
            yield one
            return
        async with telling(one.client, activity.defn(name=WEBHOOK_ACTIVITY)(tell), task_queue=queue, stop_grace=0.2):
            yield one


async def runs_that_give_way(temporal: str, thread_id: ThreadId) -> None:
    """One is interrupted, one is undone after a compaction under it, one that has ended is deleted."""
    async with host(temporal) as one:
        first = await one.start_run(thread_id, "ends")
        await one.threads.wait_run(thread_id, first)
        await one.start_run(thread_id, "stays")
        await one.start_run(thread_id, "stays")
        await until(lambda: len(one.guests.started) == 2)
        undone = await one.start_run(thread_id, "stays", multitask=Multitask.INTERRUPT)
        await until(lambda: len(one.guests.started) == 3)
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)
        last = await one.start_run(thread_id, "ends", multitask=Multitask.ROLLBACK)
        await one.threads.until_gone(thread_id, undone)
        await one.threads.wait_run(thread_id, last)
        await one.threads.cancel_run(thread_id, first, CancelAction.DELETE)


async def runs_that_are_delayed(temporal: str, thread_id: ThreadId) -> None:
    """One is cancelled while it waits, one waits through a compaction, another passes by."""
    async with host(temporal) as one:
        cancelled = await one.start_run(thread_id, "ends", after=600.0)
        later = await one.start_run(thread_id, "ends", after=4.0)
        await one.threads.cancel_run(thread_id, cancelled)
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "ends"))
        await one.threads.wait_run(thread_id, later)


async def webhooks_that_are_told(temporal: str, thread_id: ThreadId) -> None:
    """One at once, one that refuses, one that is told again after a compaction."""
    let_go = asyncio.Event()

    async def tell(notice: bytes) -> None:
        if b"refuses" in notice:
            raise ApplicationError("answered 410", non_retryable=True)
        if b"slow" in notice:
            await let_go.wait()

    async with host(temporal, tell) as one:
        for name in ("good", "refuses"):
            run_id = await one.start_run(thread_id, "ends", webhook=f"https://{name}.test/")
            await one.threads.until_told(thread_id, run_id)
        slow = await one.start_run(thread_id, "ends", webhook="https://slow.test/")
        await one.threads.wait_run(thread_id, slow)
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)
        let_go.set()
        await one.threads.until_told(thread_id, slow)


WAY_SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario for scenario in (runs_that_give_way, runs_that_are_delayed, webhooks_that_are_told)
}
