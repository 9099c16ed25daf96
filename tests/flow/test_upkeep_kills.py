"""Hosts die over what the clock asks of them: threads whose time is over go all the same, and a cron runs once."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from temporalio.client import Client
from temporalio.service import RPCError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, victim_host
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

FEW = {"wanted": 3, "pause": 0}
SOON = {"AGENTVISOR_TEMPORAL_STATELESS_GRACE": "2s"}
STEPS: dict[str, Any] = {"input": FEW, "config": {"configurable": {"graph": "steps"}}}


def is_erased(project: Project, thread_id: str) -> bool:
    async def described() -> bool:
        client = await Client.connect(project.temporal)
        try:
            await client.get_workflow_handle(thread_id).describe()
        except RPCError:
            return True
        return False

    return asyncio.run(described())


def trigger(project: Project, cron_id: str) -> None:
    async def triggered() -> None:
        client = await Client.connect(project.temporal)
        async for one in await client.list_schedules():
            if one.id.endswith(cron_id):
                await client.get_schedule_handle(one.id).trigger()
                return
        raise AssertionError("Temporal does not list the schedule")

    until(lambda: any(cron_id in one for one in _schedules(project)), seconds=30)
    asyncio.run(triggered())


def _schedules(project: Project) -> list[str]:
    async def listed() -> list[str]:
        client = await Client.connect(project.temporal)
        return [one.id async for one in await client.list_schedules()]

    return asyncio.run(listed())


def test_threads_go_whose_host_was_killed_before_their_time_was_over(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project, SOON))
    thread.client.threads.update(thread.id, metadata={}, ttl={"ttl": 3 / 60, "strategy": "delete"})
    stateless = httpx.post(f"{thread.host.url}/runs", json={"assistant_id": "graph", **STEPS}).json()["run_id"]
    thread.host.kill()

    thread.on(victim_host(zygote_project, SOON))
    until(lambda: is_erased(zygote_project, thread.id), seconds=60)
    until(lambda: is_erased(zygote_project, stateless), seconds=90)


def test_a_cron_that_fires_as_its_host_dies_starts_its_run_once(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project, SOON))
    cron = thread.client.crons.create_for_thread(thread.id, "graph", schedule="0 0 1 1 *", **STEPS)
    alone = thread.client.crons.create("graph", schedule="0 0 1 1 *", on_run_completed="keep", **STEPS)
    for one in (cron, alone):
        trigger(zygote_project, one["cron_id"])  # type: ignore[typeddict-item]
    thread.host.kill()

    thread.on(victim_host(zygote_project, SOON))

    def runs(**fields: Any) -> list[dict[str, Any]]:
        return httpx.post(f"{thread.host.url}/runs/search", json=fields).json()

    def of(made: Any) -> list[str]:
        return [one["status"] for one in runs(metadata={"cron_id": made["cron_id"]}, limit=100)]

    until(lambda: of(cron) == ["success"] and of(alone) == ["success"], seconds=60, pause=0.2)
    # A try that was cut off would be made again by then.
    until(lambda: not _firing(zygote_project), seconds=60, pause=0.5)
    assert (of(cron), of(alone)) == (["success"], ["success"])


def _firing(project: Project) -> list[str]:
    async def listed() -> list[str]:
        client = await Client.connect(project.temporal)
        asked = "WorkflowType = 'agentvisor.cron' AND ExecutionStatus = 'Running'"
        return [one.id async for one in client.list_workflows(asked)]

    return asyncio.run(listed())
