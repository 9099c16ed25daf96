"""Temporal is killed under a run, and comes back on its database: the run completes, nothing acknowledged is lost."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from langgraph_sdk.errors import APIStatusError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, check_steps, victim_host
from tests.support.temporal import TemporalProcess

pytestmark = pytest.mark.flow

STEPS = 25
HEARTBEAT_TIMEOUT = "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT"


def start(project: Project, heartbeat_timeout: str) -> tuple[VictimThread, str]:
    """A run of many steps, some of them done: its thread and its id."""
    thread = VictimThread(project, victim_host(project, {HEARTBEAT_TIMEOUT: heartbeat_timeout}))
    run = thread.graph("steps", {"wanted": STEPS, "pause": 0.02})
    thread.until_it("stored step 5")
    return thread, run


def outage(temporal: TemporalProcess, seconds: float) -> None:
    temporal.kill()
    time.sleep(seconds)  # an outage is nothing but time
    asyncio.run(temporal.start())


def test_a_run_outlives_an_outage_without_a_restart(own_project: Project, temporal_process: TemporalProcess) -> None:
    thread, run = start(own_project, "30s")
    outage(temporal_process, 0.5)
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == ["completed"]
    check_steps(thread, ended, STEPS)


def test_after_an_outage_longer_than_the_heartbeat_timeout_the_run_is_restarted(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread, run = start(own_project, "2s")
    outage(temporal_process, 3)
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == ["host_gone", "completed"]
    check_steps(thread, ended, STEPS)


def test_the_server_that_dev_has_started_is_started_again(zygote_project: Project) -> None:
    host = victim_host(zygote_project, own_temporal=True)
    thread = VictimThread(zygote_project, host)
    run = thread.graph("steps", {"wanted": STEPS, "pause": 0.02})
    thread.until_it("stored step 5")
    (server,) = [one for one in psutil.Process(host.pid).children() if one.name() == "temporal"]
    server.kill()
    check_steps(thread, thread.ended(run), STEPS)


def test_a_run_that_is_asked_for_during_an_outage_is_refused_or_done(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread = VictimThread(own_project, victim_host(own_project, agent="call"))
    temporal_process.kill()
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(thread.call, "plain:echo", number) for number in range(3)]
        asyncio.run(temporal_process.start())
        refused = [error for error in (one.exception() for one in asked) if error is not None]
    assert all(isinstance(error, APIStatusError) and error.status_code == 503 for error in refused), refused
    accepted = [one.result() for one in asked if one.exception() is None]
    assert {thread.ended(run)["status"] for run in accepted} <= {"success"}
    known = [one["run_id"] for one in thread.client.runs.list(thread.id)]
    assert set(accepted) <= set(known)
    assert {thread.ended(run)["status"] for run in known} <= {"success"}
    assert thread.did()["did echo"] == len(known)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_outlives_one_outage_after_the_other(own_project: Project, temporal_process: TemporalProcess) -> None:
    thread, run = start(own_project, "30s")
    for number in range(6, STEPS - 5, 3):
        thread.until_it(f"stored step {number}")
        outage(temporal_process, 0.1)
    check_steps(thread, thread.ended(run), STEPS)
