"""How often a run is restarted by itself, and that a thread is never left busy with a run that nobody runs."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread, check_steps, kill, victim_host

pytestmark = pytest.mark.flow


def test_a_run_that_crashes_again_and_again_ends_when_its_budget_is_used_up(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.ended(thread.graph("crashing", {}))
    assert run["status"] == "error"
    assert [one["ending"] for one in run["attempts"]] == ["agent_signal"] * 4
    assert run["error"]["message"].startswith("the agent was killed by signal 11 (after 4 attempts")
    assert thread.did() == {"did first": 1, "began second": 4}
    assert thread.status() == "error"


def test_restarts_and_runs_that_were_given_up_are_counted(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project))
    thread.ended(thread.graph("crashing", {}))
    told = httpx.get(f"{thread.host.url}/metrics").text.splitlines()
    assert 'agentvisor_restarts_total{ending="agent_signal"} 3.0' in told
    assert 'agentvisor_given_up_runs_total{ending="agent_signal"} 1.0' in told


def test_after_the_budget_the_next_run_is_accepted_and_goes_on(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.graph("crashing", {}))
    thread.tell("repaired")
    assert thread.ended(thread.graph("crashing", None))["status"] == "success"
    assert thread.did()["did first"] == 1
    assert thread.values()["result"] == "repaired"
    assert thread.status() == "idle"


def test_a_run_behind_one_that_crashes_gets_its_turn(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.graph("crashing", {})
    behind = thread.call("plain:echo", "after")
    assert thread.ended(behind)["status"] == "success"


def test_with_no_restarts_the_first_crash_is_the_runs_error(zygote_project: Project) -> None:
    never = {"AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "0"}
    thread = VictimThread(zygote_project, victim_host(zygote_project, never))
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    kill(thread.until_it("began slow"))
    ended = thread.ended(run)
    assert ended["status"] == "error"
    assert ended["error"]["error"] == "AgentSignal"
    assert len(ended["attempts"]) == 1
    thread.tell("gate")
    # What was durable is there all the same: a new run does only the rest.
    assert thread.ended(thread.graph("slow_tools", None))["status"] == "success"
    assert (thread.did()["did one"], thread.did()["did two"], thread.did()["began slow"]) == (1, 1, 2)


def test_a_run_that_gets_on_outlives_more_kills_than_its_budget_when_progress_counts(zygote_project: Project) -> None:
    progress = {
        "AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "1",
        "AGENTVISOR_TEMPORAL_RUN_RESTART_RESET_ON_PROGRESS": "true",
    }
    thread = VictimThread(zygote_project, victim_host(zygote_project, progress))
    run = thread.graph("steps", {"wanted": 25, "pause": 0.05})
    for number in (3, 8, 13, 18):
        kill(thread.until_it(f"stored step {number}"))
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == [*["agent_signal"] * 4, "completed"]
    check_steps(thread, ended, 25)


def test_a_tool_that_takes_longer_than_every_timeout_is_run_once(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.ended(thread.call("plain:sleeps", 3.5))  # the heartbeat timeout is two seconds
    assert [one["ending"] for one in run["attempts"]] == ["completed"]
    assert thread.did() == {"did sleeps": 1}


def _survives(project: Project, seed: int) -> None:
    """Kill each of the first few attempts so early that often nothing was stored yet."""
    chance = random.Random(seed)
    delays = [int(10 ** chance.uniform(0, 5.5)) for _ in range(chance.randint(1, 5))]
    thread = VictimThread(project, project.hosts[0])
    thread.tell("delays", " ".join(map(str, delays)))
    run = thread.ended(thread.graph("dies_early", {"given": "x"}))
    endings = [one["ending"] for one in run["attempts"]]
    assert set(endings) <= {"agent_signal", "completed"}, (seed, endings)
    if run["status"] == "success":
        assert endings[-1] == "completed", seed
        assert thread.values()["out_join"] == "join of x", seed
    else:
        assert (run["status"], endings) == ("error", ["agent_signal"] * 4), (seed, endings)
        thread.tell("delays")
        begun = bool(thread.history())
        again = thread.ended(thread.graph("dies_early", None if begun else {"given": "x"}))
        assert again["status"] == "success", (seed, again["error"])
        assert thread.values()["out_join"] == "join of x", seed
    assert thread.status() == "idle", seed


def test_an_accepted_run_is_never_lost_however_early_its_agent_dies(warm_victims: Project) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(lambda seed: _survives(warm_victims, seed), range(15)))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_accepted_runs_are_never_lost(victim_hosts: Callable[[str], Project], start_method: str) -> None:
    project = victim_hosts(start_method)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(lambda seed: _survives(project, seed), range(100, 200)))
