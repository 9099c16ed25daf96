"""Two hosts are restarted in turn, again and again, under a run of 200 steps and others that come and go."""

import signal
import time

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.flow.serving import Deployment, deployment, endings, seconds_to_end

pytestmark = pytest.mark.flow

STEPS = 200
OFTEN = {"TEMPORAL_COMPACT_EVENTS": "100", "TEMPORAL_FOLD_THRESHOLD": "4KiB", "TEMPORAL_HEARTBEAT_TIMEOUT": "5s"}
"""So that the thread is compacted many times, before, during and after the hand-overs."""


def restart_in_turn(
    hosts: Deployment, interval: float, thread: VictimThread, run: str
) -> tuple[int, list[VictimThread]]:
    """Until the run has ended; how many restarts there were, and the threads of short runs that were started."""
    short: list[VictimThread] = []
    restarts, due = 0, time.monotonic() + interval
    while thread.run(run)["status"] in ("pending", "running"):
        if time.monotonic() > due:
            due += interval
            victim = hosts.hosts[0]
            hosts.hosts.remove(victim)
            thread.on(hosts.hosts[0])
            victim.tell(signal.SIGTERM)
            _begin_short_run(hosts, short)
            seconds_to_end(victim, 40)
            hosts.grow()
            restarts += 1
        _begin_short_run(hosts, short)
        time.sleep(0.3)
    return restarts, short


def _begin_short_run(hosts: Deployment, short: list[VictimThread]) -> None:
    thread = hosts.thread()
    thread.graph("tools", {"wanted": 1})
    short.append(thread)


def rolls(project: Project, *, interval: float, pause: float, seconds: float, least: int) -> None:
    with deployment(project, **OFTEN) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": STEPS, "seconds": pause})
        restarts, short = restart_in_turn(hosts, interval, thread, run)
        ended = thread.ended(run, seconds=seconds)
        assert ended["status"] == "success", thread.told()
        assert set(endings(ended)) == {"host_stopped", "completed"}
        assert restarts >= least
        # Every tool once, and the state is that of one run without a stop.
        did = thread.did()
        assert {what: count for what, count in did.items() if count != 1} == {}
        assert len(did) == 2 * STEPS
        assert thread.values()["done"] == list(range(1, STEPS + 1))
        for one in short:
            one.on(hosts.hosts[0])
            (listed,) = one.client.runs.list(one.id)
            ended = one.ended(str(listed["run_id"]))
            assert ended["status"] == "success", one.told()
            assert set(endings(ended)) <= {"host_stopped", "completed"}
            assert one.did() == {"began 1": 1, "ended 1": 1}


@pytest.mark.timeout(240)
@pytest.mark.slow
def test_a_run_of_200_steps_outlives_hosts_that_are_restarted_every_few_seconds(zygote_project: Project) -> None:
    rolls(zygote_project, interval=4, pause=0.15, seconds=60, least=4)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_of_200_steps_outlives_hosts_that_are_restarted_every_20_seconds_for_ten_minutes(
    zygote_project: Project,
) -> None:
    rolls(zygote_project, interval=20, pause=2.9, seconds=60, least=25)
