"""What fails while something else is being recovered from: every accepted run still comes to an end that is told."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread, is_one_line, kill, victim_host
from tests.support.temporal import TemporalProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


def test_temporal_is_killed_while_runs_are_taken_up_again(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    host = victim_host(own_project)
    threads = [VictimThread(own_project, host) for _ in range(4)]
    runs = [thread.graph("slow_tools", {}) for thread in threads]
    for thread in threads:
        thread.until_it("operation put_writes", 3)
        thread.until_it("began slow")
    host.kill()
    again = victim_host(own_project)
    for thread in threads:
        thread.on(again)
    # The first is at work again, the others are about to be.
    until(lambda: any(thread.did()["began slow"] > 1 for thread in threads), seconds=30)
    temporal_process.kill()
    asyncio.run(temporal_process.start())
    for thread in threads:
        thread.tell("gate")
    for thread, run in zip(threads, runs, strict=True):
        ended = thread.ended(run, seconds=60)
        assert ended["status"] == "success", ended["error"]
        assert (thread.did()["did one"], thread.did()["did two"]) == (1, 1)
        assert is_one_line(thread.history())
        assert thread.status() == "interrupted"


CHANGED = {
    "AGENTVISOR_GUEST_START_METHOD": "exec",
    "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "5s",
    "AGENTVISOR_TEMPORAL_PENDING_WRITES_ENABLED": "false",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "0",
    "AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY": "5",
    "AGENTVISOR_TEMPORAL_FOLD_THRESHOLD": "1KiB",
    "AGENTVISOR_STORAGE_PATCH_CHAIN": "0",
}


def test_a_run_that_began_under_another_configuration_goes_on(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project))
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    thread.until_it("began slow")
    thread.host.kill()
    thread.on(victim_host(zygote_project, CHANGED))
    thread.until_it("began slow", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == ["host_gone", "paused"]
    assert (thread.did()["did one"], thread.did()["did two"]) == (1, 1), "pending writes are pinned to the thread"
    assert thread.ended(thread.graph("slow_tools", None, command={"resume": "yes"}))["status"] == "success"
    assert thread.values()["answer"] == "yes"


def test_a_run_whose_agent_is_no_longer_configured_ends_and_says_so(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project))
    run = thread.graph("slow_tools", {})
    thread.until_it("began slow")
    thread.host.kill()
    thread.on(victim_host(zygote_project, agent="call"))
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == ["host_gone", "could_not_start"]
    assert ended["error"] == {
        "error": "UnknownAgent",
        "message": "there is no agent 'graph'; configured: call",
    }
    assert thread.history(), "and nothing that was stored is gone"


def _guest_dies_at_once(project: Project, number: int) -> None:
    """Kill the guest somewhere between the run's acceptance and its agent's first checkpoint."""
    thread = VictimThread(project, project.hosts[0])
    thread.tell("delays")
    run = thread.graph("dies_early", {"given": "x"})
    until(lambda: thread.run(run)["status"] != "pending" or number % 2, seconds=10, pause=0.002 * number)
    for guest in psutil.Process(project.hosts[0].pid).children():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # the test of another thread has killed it
            if "agentvisor.guest.supervisor" in " ".join(guest.cmdline()):
                kill(guest.pid)
    ended = thread.ended(run)
    seen = [one["ending"] for one in ended["attempts"]]
    if ended["status"] == "success":
        assert (set(seen[:-1]) <= {"guest_gone"}, seen[-1]) == (True, "completed"), seen
        assert thread.values()["out_join"] == "join of x"
    else:
        assert (ended["status"], seen) == ("error", ["guest_gone"] * 4), ended
    assert thread.status() in ("idle", "error")


def test_an_accepted_run_is_never_lost_however_early_its_guest_dies(zygote_project: Project) -> None:
    victim_host(zygote_project)
    for number in range(4):
        _guest_dies_at_once(zygote_project, number)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_accepted_runs_are_never_lost_although_their_guest_dies(zygote_project: Project) -> None:
    victim_host(zygote_project)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(lambda number: _guest_dies_at_once(zygote_project, number), range(100)))
