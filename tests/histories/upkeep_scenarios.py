"""Lives of threads whose time to live is over, and a firing of a cron."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

from temporalio import activity
from tests.histories.store_scenarios import Scenario
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.waiting import until
from tests.support.writing import put

from agentvisor.core.ids import ThreadId
from agentvisor.core.lifetimes import Lifetime, Strategy
from agentvisor.host.worker import upkeep
from agentvisor.host.workflow.cron import (
    CRON_WORKFLOW,
    FIRE_ACTIVITY,
    RELEASE_ACTIVITY,
    STARTED_BRIEFLY,
    CronWorkflow,
)
from agentvisor.host.workflow.expiring import EXPIRE_ACTIVITY, upkeep_queue
from agentvisor.protocol.v1 import run_pb2


async def ends(agent: ScriptedAgent) -> None:
    await agent.call(put(0))


@asynccontextmanager
async def host(temporal: str, swept: list[bytes]) -> AsyncGenerator[EngineHost]:
    @activity.defn(name=EXPIRE_ACTIVITY)
    async def expire(encoded: bytes) -> None:
        swept.append(encoded)

    queue = f"q-{uuid4().hex[:8]}"
    async with (
        engine_host(temporal, queue, knobs=Knobs(compact_events=40), guests=ScriptedGuests(ends=ends)) as one,
        upkeep(one.client, [expire], [CronWorkflow], task_queue=queue, stop_grace=0.2),
    ):
        yield one


async def time_to_live(temporal: str, thread_id: ThreadId) -> None:
    """Put off by a run, changed, over once before a compaction and once after it; taken away in the end."""
    swept: list[bytes] = []
    async with host(temporal, swept) as one:
        first = Lifetime(600_000)
        await one.threads.create(thread_id, {}, exist_ok=False, lifetime=first)
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "ends"))
        soon = Lifetime(300, Strategy.KEEP_LATEST, while_waiting=True)
        await one.threads.set_lifetime(thread_id, soon, {"a": 1})
        await until(lambda: len(swept) == 1)
        await make_compaction_due(one.threads, thread_id)
        await until_compacted(one.threads, thread_id)
        await one.threads.wait_run(thread_id, await one.start_run(thread_id, "ends"))
        await until(lambda: len(swept) >= 2)
        await one.threads.set_lifetime(thread_id, None, {})


async def cron_that_fires(temporal: str, workflow_id: str) -> None:
    """Tried twice; the thread of its run is let go."""
    tries: list[bytes] = []

    @activity.defn(name=FIRE_ACTIVITY)
    async def fire(encoded: bytes) -> str:
        tries.append(encoded)
        if len(tries) == 1:
            raise RuntimeError("not now")
        return STARTED_BRIEFLY

    @activity.defn(name=RELEASE_ACTIVITY)
    async def release(_: bytes) -> str:
        return ""

    queue = f"q-{uuid4().hex[:8]}"
    async with (
        engine_host(temporal, queue, guests=ScriptedGuests()) as one,
        upkeep(one.client, [fire, release], [CronWorkflow], task_queue=queue, stop_grace=0.2),
    ):
        told = run_pb2.FireCron(cron_id="c", owner="anna", clock="[]").SerializeToString()
        place = upkeep_queue(queue)
        await one.client.execute_workflow(CRON_WORKFLOW, told, id=workflow_id, task_queue=place, result_type=str)
    assert len(tries) == 2
    assert tries[0] == tries[1]


UPKEEP_SCENARIOS: dict[str, Scenario] = {"time_to_live": time_to_live}
CRON_SCENARIOS = {"cron_that_fires": cron_that_fires}
