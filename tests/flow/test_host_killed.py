"""A host is killed in the middle of a run: another goes on with it, or the same one once it is back."""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import (
    SECONDS,
    VictimThread,
    check_steps,
    host_of,
    is_alive,
    is_one_line,
    victim_host,
    warm_by_default,
)
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


def in_the_middle(project: Project, host: HostProcess) -> tuple[VictimThread, str, int]:
    """A run whose quick tasks are durable and whose slow one is at work: its thread, its id, its process."""
    thread = VictimThread(project, host)
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    return thread, run, thread.until_it("began slow")


def finishes(thread: VictimThread, run: str) -> list[str]:
    """Let the slow task go on after it was begun again; how each attempt ended."""
    thread.until_it("began slow", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success"
    did = thread.did()
    assert (did["did one"], did["did two"], did["did slow"]) == (1, 1, 1)
    assert is_one_line(thread.history())
    return [one["ending"] for one in ended["attempts"]]


@warm_by_default
def test_another_host_goes_on_with_the_run_of_one_that_was_killed(project: Project) -> None:
    hosts = [victim_host(project), victim_host(project)]
    thread, run, pid = in_the_middle(project, hosts[0])
    victim = host_of(project, pid)
    victim.kill()
    thread.on(next(host for host in hosts if host is not victim))
    assert finishes(thread, run) == ["host_gone", "paused"]
    assert thread.run(run)["attempts"][0]["reason"] == "the host stopped sending heartbeats"
    first, second = (one["host_id"] for one in thread.run(run)["attempts"])
    assert first != second
    until(lambda: not is_alive(pid), seconds=SECONDS)


def test_the_only_host_goes_on_with_its_run_when_it_is_back(zygote_project: Project) -> None:
    host = victim_host(zygote_project)
    thread, run, _ = in_the_middle(zygote_project, host)
    host.kill()
    thread.on(victim_host(zygote_project))
    assert finishes(thread, run) == ["host_gone", "paused"]


def test_what_was_acknowledged_is_served_by_others_before_the_run_is_taken_over(zygote_project: Project) -> None:
    late = {"AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "60s"}
    hosts = [victim_host(zygote_project, late), victim_host(zygote_project, late)]
    thread, run, pid = in_the_middle(zygote_project, hosts[0])
    victim = host_of(zygote_project, pid)
    victim.kill()
    thread.on(next(host for host in hosts if host is not victim))
    kept = {one["checkpoint"]["checkpoint_id"] for one in thread.history()}
    tasks = thread.client.threads.get_state(thread.id)["tasks"]
    assert thread.stored() <= kept
    assert {one["name"] for one in tasks if one.get("result") is not None} == {"one", "two"}
    assert [one["ending"] for one in thread.run(run)["attempts"]] == [None]


def test_a_host_that_is_told_to_stop_gives_its_run_to_another_and_uses_up_no_restart(zygote_project: Project) -> None:
    never = {"AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "0"}
    hosts = [victim_host(zygote_project, never), victim_host(zygote_project, never)]
    thread, run, pid = in_the_middle(zygote_project, hosts[0])
    victim = host_of(zygote_project, pid)
    victim.stop()
    thread.on(next(host for host in hosts if host is not victim))
    assert finishes(thread, run) == ["host_stopped", "paused"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_outlives_one_host_after_the_other(zygote_project: Project) -> None:
    host = victim_host(zygote_project)
    thread = VictimThread(zygote_project, host)
    run = thread.graph("steps", {"wanted": 40, "pause": 0.01})
    for number in (7, 19, 30):
        thread.until_it(f"stored step {number}")
        thread.host.kill()
        thread.on(victim_host(zygote_project))
    check_steps(thread, thread.ended(run), 40)
