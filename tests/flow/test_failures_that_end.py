"""The page's second table: what an agent reports, its time budget and its caller's cancel end a run at once, for good.

An agent's own errors and questions have files of their own (docs/recovery.md names the test of each row).
"""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import SECONDS, VictimThread, host_of, is_alive, is_one_line, victim_host
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


def test_a_run_that_uses_up_its_time_ends_and_a_new_one_does_only_the_rest(zygote_project: Project) -> None:
    brief = {"AGENTVISOR_TEMPORAL_RUN_TIMEOUT": "5s"}
    thread = VictimThread(zygote_project, victim_host(zygote_project, brief))
    # The time that a cold guest takes to start is the run's too.
    until(lambda: thread.ended(thread.graph("steps", {"wanted": 1}))["status"] == "success", seconds=SECONDS)
    thread = VictimThread(zygote_project, thread.host)
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    pid = thread.until_it("began slow")
    ended = thread.ended(run)
    assert (ended["status"], [one["ending"] for one in ended["attempts"]]) == ("timeout", ["time_budget"])
    says = "the run's time budget (temporal.run_timeout) is used up"
    assert ended["error"] == {"error": "TimeBudget", "message": says}
    assert ended["attempts"][0]["reason"] == says
    assert thread.status() == "error"
    until(lambda: not is_alive(pid), seconds=SECONDS)
    thread.tell("gate")
    again = thread.ended(thread.graph("slow_tools", None))
    assert [one["ending"] for one in again["attempts"]] == ["paused"]
    did = thread.did()
    assert (did["did one"], did["did two"], did["began slow"]) == (1, 1, 2)
    assert is_one_line(thread.history())


# --- cancels ---------------------------------------------------------------------------------------------------------


def test_a_run_that_waits_for_its_turn_is_cancelled_without_an_attempt(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    first = thread.graph("slow_tools", {})
    thread.until_it("began slow")
    waiting = thread.call("plain:echo", "never")
    thread.client.runs.cancel(thread.id, waiting)
    ended = thread.ended(waiting)
    assert (ended["status"], ended["attempts"], ended["error"]) == ("interrupted", [], None)
    assert thread.run(first)["status"] == "running"
    thread.tell("gate")
    assert thread.ended(first)["status"] == "success"
    assert thread.did()["did echo"] == 0


def test_what_a_cancelled_run_has_done_stays_and_a_new_one_does_only_the_rest(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    pid = thread.until_it("began slow")
    thread.client.runs.cancel(thread.id, run, wait=True)
    ended = thread.ended(run)
    assert (ended["status"], [one["ending"] for one in ended["attempts"]]) == ("interrupted", ["cancelled"])
    assert ended["attempts"][0]["reason"] == "the run was cancelled"
    until(lambda: not is_alive(pid), seconds=SECONDS)
    assert thread.status() == "interrupted"
    thread.tell("gate")
    assert thread.ended(thread.graph("slow_tools", None))["status"] == "success"
    did = thread.did()
    assert (did["did one"], did["did two"], did["began slow"]) == (1, 1, 2)


def test_a_run_that_is_blocked_and_hears_no_signal_is_cancelled_all_the_same(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    run = thread.graph("stubborn", {})
    pid = thread.until_it("began second")
    thread.client.runs.cancel(thread.id, run)
    ended = thread.ended(run)
    assert (ended["status"], [one["ending"] for one in ended["attempts"]]) == ("interrupted", ["cancelled"])
    until(lambda: not is_alive(pid), seconds=SECONDS)
    thread.tell("repaired")
    assert thread.ended(thread.graph("stubborn", None))["status"] == "success"
    assert thread.did() == {"did first": 1, "began second": 2}


def test_a_run_whose_host_is_gone_is_cancelled_and_not_started_again(zygote_project: Project) -> None:
    late = {"AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "5s"}
    hosts = [victim_host(zygote_project, late), victim_host(zygote_project, late)]
    thread = VictimThread(zygote_project, hosts[0])
    run = thread.graph("slow_tools", {})
    victim = host_of(zygote_project, thread.until_it("began slow"))
    victim.kill()
    thread.on(next(host for host in hosts if host is not victim))
    thread.client.runs.cancel(thread.id, run)
    ended = thread.ended(run)
    assert (ended["status"], [one["ending"] for one in ended["attempts"]]) == ("interrupted", ["host_gone"])
    assert thread.did()["began slow"] == 1
