"""The agent, its host and Temporal are killed together; what was acknowledged is there when they are back."""

import asyncio

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, is_one_line, kill, victim_host
from tests.support.temporal import TemporalProcess

pytestmark = pytest.mark.flow


def restart_everything(thread: VictimThread, temporal: TemporalProcess, *agents: int) -> None:
    """Kill it all with SIGKILL, and start what a user starts."""
    temporal.kill()
    for pid in agents:
        kill(pid)
    thread.host.kill()
    asyncio.run(temporal.start())
    thread.on(victim_host(thread.project))


def test_a_run_goes_on_after_everything_was_killed_in_the_middle_of_a_super_step(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread = VictimThread(own_project, victim_host(own_project))
    run = thread.graph("slow_tools", {})
    pid = thread.until_it("began slow")
    thread.until_it("operation put_writes", 3)
    restart_everything(thread, temporal_process, pid)
    thread.until_it("began slow", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success"
    assert [one["ending"] for one in ended["attempts"]] == ["host_gone", "paused"]
    did = thread.did()
    assert (did["did one"], did["did two"], did["did slow"]) == (1, 1, 1)
    assert thread.stored() <= {one["checkpoint"]["checkpoint_id"] for one in thread.history()}
    assert is_one_line(thread.history())


def test_a_question_is_answered_after_everything_was_restarted(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread = VictimThread(own_project, victim_host(own_project))
    thread.tell("gate")
    assert thread.ended(thread.graph("slow_tools", {}))["status"] == "success"
    before = thread.history()
    restart_everything(thread, temporal_process)
    assert thread.status() == "interrupted"
    assert thread.history() == before
    assert thread.ended(thread.graph("slow_tools", None, command={"resume": "yes"}))["status"] == "success"
    assert thread.values()["answer"] == "yes"
    assert (thread.did()["answered yes"], thread.did()["did slow"]) == (1, 1)
    assert thread.status() == "idle"


def test_two_questions_are_answered_by_their_ids_after_everything_was_restarted(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    thread = VictimThread(own_project, victim_host(own_project))
    thread.ended(thread.graph("questions", {}))
    restart_everything(thread, temporal_process)
    asked = {one["value"]: one["id"] for one in thread.client.threads.get_state(thread.id)["interrupts"]}
    answers = {asked["Is it legal?"]: "yes", asked["Is it paid?"]: "no"}
    assert thread.ended(thread.graph("questions", None, command={"resume": answers}))["status"] == "success"
    assert thread.values() == {"legal": "yes", "money": "no"}
    assert (thread.did()["legal took yes"], thread.did()["money took no"], thread.did()["did both"]) == (1, 1, 1)
