"""Effects when hosts die or freeze: one is never repeated blindly, and a late writer records nothing (B5)."""

import pytest
from tests.flow.charging import answered_truly, charged, questions
from tests.flow.conftest import Project
from tests.flow.deaths import SECONDS, VictimThread, host_of, is_alive, victim_host
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

AGENTS = {"graph": "node", "plain": "plain"}
MOST = ["graph", pytest.param("plain", marks=pytest.mark.slow)]


def in_the_effect(project: Project, agent: str) -> tuple[VictimThread, str, int, HostProcess]:
    """A run that is in the middle of its effect, its process and its host; the thread speaks with the other host."""
    name = "call" if agent == "plain" else "graph"
    hosts = [victim_host(project, agent=name), victim_host(project, agent=name)]
    thread = VictimThread(project, hosts[0])
    thread.tell("gated", "1")
    run = thread.call("charges:plain", "x") if agent == "plain" else thread.graph("charges:graph", {})
    pid = thread.until_it(f"tried {AGENTS[agent]}")
    host = host_of(project, pid)
    thread.on(next(one for one in hosts if one is not host))
    return thread, run, pid, host


@pytest.mark.parametrize("agent", MOST)
def test_an_effect_under_way_when_its_host_is_killed_is_asked_about(zygote_project: Project, agent: str) -> None:
    thread, run, pid, host = in_the_effect(zygote_project, agent)
    host.kill()
    ended = thread.ended(run)
    assert [one["ending"] for one in ended["attempts"]] == ["host_gone", "paused"]
    until(lambda: not is_alive(pid), seconds=SECONDS)
    (asked,) = questions(thread)
    assert (asked["value"]["attempt"], asked["value"]["run_id"]) == (1, run)
    thread.tell("gate")
    assert answered_truly(thread, agent)["status"] == "success"
    assert charged(thread, agent) == [1]


@pytest.mark.parametrize("agent", MOST)
def test_an_effect_that_ends_on_a_host_that_was_replaced_is_not_recorded(zygote_project: Project, agent: str) -> None:
    thread, run, zombie, host = in_the_effect(zygote_project, agent)
    host.freeze()
    # Its agent is awake: the effect happens now, and waits for that to be recorded.
    thread.tell("gate")
    thread.until_it(f"charged {AGENTS[agent]}")
    assert [one["ending"] for one in thread.ended(run)["attempts"]] == ["host_gone", "paused"]
    asked = questions(thread)
    host.thaw()
    until(lambda: not is_alive(zombie), seconds=SECONDS)
    assert thread.did()[f"paid {AGENTS[agent]}"] == 0, "it heard that its effect is recorded"
    assert questions(thread) == asked
    assert answered_truly(thread, agent)["status"] == "success"
    assert charged(thread, agent) == [1]
