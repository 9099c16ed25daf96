"""The page's first table: what fails around an agent is restarted, and the run's record says what it was.

Agents that are killed, hosts and Temporal have files of their own (docs/recovery.md names the test of each row).
"""

import asyncio
import time
from collections.abc import Generator

import psutil
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import SECONDS, VictimThread, check_steps, is_alive, is_one_line, kill, victim_host
from tests.support.line import Line, line_to
from tests.support.temporal import TemporalProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

LIMIT = {"AGENTVISOR_GUEST_MEMORY_LIMIT": "256MiB"}
STEPS = 20


def endings(run: dict) -> list[str]:
    return [one["ending"] for one in run["attempts"]]


# --- memory ----------------------------------------------------------------------------------------------------------


def test_an_agent_that_runs_out_of_memory_goes_on_from_its_latest_checkpoint(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project, LIMIT))
    run = thread.graph("hungry", {})
    thread.until_it("began second", 2)
    thread.tell("repaired")
    ended = thread.ended(run)
    assert ended["status"] == "success"
    assert set(endings(ended)[:-1]) == {"agent_out_of_memory"}
    assert endings(ended)[-1] == "completed"
    assert ended["attempts"][0]["reason"].endswith("its limit is 256 MiB (guest.memory_limit)")
    assert thread.did()["did first"] == 1
    assert thread.values() == {"result": "repaired"}


def test_an_agent_that_runs_out_of_memory_each_time_ends_its_run_with_that_reason(zygote_project: Project) -> None:
    once = LIMIT | {"AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "1"}
    thread = VictimThread(zygote_project, victim_host(zygote_project, once))
    ended = thread.ended(thread.graph("hungry", {}))
    assert (ended["status"], endings(ended)) == ("error", ["agent_out_of_memory"] * 2)
    assert ended["error"]["error"] == "AgentOutOfMemory"
    assert "(guest.memory_limit) (after 2 attempts; start a new run" in ended["error"]["message"]
    thread.tell("repaired")
    assert thread.ended(thread.graph("hungry", None))["status"] == "success"
    assert thread.did() == {"did first": 1, "began second": 3}


# --- the guest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", ["supervisor", "zygote"])
def test_all_runs_of_a_guest_that_is_killed_under_them_go_on_in_another(zygote_project: Project, killed: str) -> None:
    host = victim_host(zygote_project)
    threads = [VictimThread(zygote_project, host) for _ in range(2)]
    runs = [thread.graph("slow_tools", {}) for thread in threads]
    for thread in threads:
        thread.until_it("operation put_writes", 3)
    agents = [thread.until_it("began slow") for thread in threads]
    # The supervisor holds the guest's end of the connection: dead, the connection is severed while the agents live.
    zygote, supervisor = psutil.Process(agents[0]).parents()[:2]
    assert psutil.Process(agents[1]).parents()[0] == zygote, "one guest"
    kill((zygote if killed == "zygote" else supervisor).pid)
    for thread in threads:
        thread.until_it("began slow", 2)
        thread.tell("gate")
    for thread, run in zip(threads, runs, strict=True):
        ended = thread.ended(run)
        assert endings(ended) == ["guest_gone", "paused"]
        did = thread.did()
        assert (did["did one"], did["did two"], did["did slow"]) == (1, 1, 1)
        assert is_one_line(thread.history())
    until(lambda: not any(is_alive(pid) for pid in agents), seconds=SECONDS)


# --- the host's connection to Temporal -------------------------------------------------------------------------------


@pytest.fixture
def line(temporal: str) -> Generator[Line]:
    with line_to(temporal) as line:
        yield line


def test_a_host_whose_heartbeats_do_not_arrive_is_replaced_and_what_arrives_late_counts_for_nothing(
    zygote_project: Project, temporal: str, line: Line
) -> None:
    zygote_project.temporal = line.address
    lonely = victim_host(zygote_project)
    thread = VictimThread(zygote_project, lonely)
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    zombie = thread.until_it("began slow")
    line.cut()
    zygote_project.temporal = temporal
    thread.on(victim_host(zygote_project))
    thread.tell("gate")  # the cut off agent works on; what it then says must not count
    thread.until_it("did slow", 2)
    ended = thread.ended(run)
    assert ended["status"] == "success"
    assert endings(ended)[0] == "host_gone"
    assert ended["attempts"][0]["host_id"] != ended["attempts"][-1]["host_id"]
    history = thread.history()
    line.mend()
    until(lambda: not is_alive(zombie), seconds=SECONDS)
    assert thread.history() == history
    assert is_one_line(history)
    assert (thread.did()["did one"], thread.did()["did two"]) == (1, 1)
    acknowledged = {one["what"] for one in thread.effects() if one["pid"] == zombie and "acknowledged" in one["what"]}
    assert "acknowledged slow" not in acknowledged


def test_heartbeats_that_are_late_by_less_than_their_timeout_cost_nothing(zygote_project: Project, line: Line) -> None:
    zygote_project.temporal = line.address
    late = {"AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "10s"}
    thread = VictimThread(zygote_project, victim_host(zygote_project, late))
    run = thread.graph("steps", {"wanted": STEPS, "pause": 0.05})
    thread.until_it("stored step 3")
    line.cut()
    time.sleep(3)  # a cut is nothing but time
    line.mend()
    ended = thread.ended(run)
    assert endings(ended) == ["completed"]
    check_steps(thread, ended, STEPS)


# --- Temporal --------------------------------------------------------------------------------------------------------


def outage(temporal: TemporalProcess, seconds: float) -> None:
    temporal.kill()
    time.sleep(seconds)  # an outage is nothing but time
    asyncio.run(temporal.start())


def test_a_run_outlives_five_seconds_without_temporal(own_project: Project, temporal_process: TemporalProcess) -> None:
    default = {"AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "10s"}
    thread = VictimThread(own_project, victim_host(own_project, default))
    run = thread.graph("steps", {"wanted": STEPS, "pause": 0.05})
    thread.until_it("stored step 3")
    outage(temporal_process, 5)
    ended = thread.ended(run)
    assert endings(ended) == ["completed"]
    check_steps(thread, ended, STEPS)


def test_after_an_outage_longer_than_the_restart_budget_a_new_run_goes_on(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    brief = {"AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ELAPSED": "3s"}
    thread = VictimThread(own_project, victim_host(own_project, brief))
    run = thread.graph("steps", {"wanted": STEPS, "pause": 0.05})
    thread.until_it("stored step 5")
    outage(temporal_process, 5)
    ended = thread.ended(run)
    assert (ended["status"], endings(ended)) == ("error", ["host_gone"])
    assert ended["error"] == {
        "error": "HostGone",
        "message": "the host stopped sending heartbeats (after 1 attempt; start a new run to go on from the latest "
        "checkpoint)",
    }
    assert thread.status() == "error"
    check_steps(thread, thread.ended(thread.graph("steps", None)), STEPS)
