"""Flows on real hosts: a method that has returned is not called again, and CrewAI finds its way."""

import pytest
from tests._crewai.conftest import Desk
from tests._crewai.thread import DeskThread
from tests.flow.deaths import kill

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def test_a_killed_flow_goes_on_in_the_middle_of_its_cycle(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("Counted", {"limit": 3})
    kill(thread.until_it("began the second"))
    thread.until_it("began the second", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    assert thread.values() == {"n": 3, "seen": ["one", "two"]}
    did = thread.did()
    assert (did["did one"], did["did two"], did["did joined"], did["did last"]) == (1, 1, 1, 1)
    assert did["did step"] == 4  # the second was cut off


def test_a_persisted_flow_remembers_over_runs(desk: Desk) -> None:
    thread = DeskThread(desk)
    for times in (1, 2, 3):
        ended = thread.run_of("Persisted", {})
        assert ended["status"] == "success", ended["error"]
        assert thread.values() == {"n": times, "id": thread.id}
    assert not list(desk.folder.rglob("flow_states.db"))


def test_a_persisted_flow_inside_of_another_remembers_over_runs(desk: Desk) -> None:
    thread = DeskThread(desk)
    for times in (1, 2):
        ended = thread.run_of("Holds", {})
        assert ended["status"] == "success", ended["error"]
        assert thread.values() == {"by itself": 1, "named": times}


def test_tasks_of_a_crew_inside_a_flow_are_kept_too(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("WithCrew", {})
    kill(thread.until_it("began booking"))
    thread.until_it("began booking", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    assert thread.values() == {"raw": "Dear customer, it is done.", "number": "7"}
    did = thread.did()
    assert (did["looked up 7"], did["booked"], did["told with booked"], did["reported"]) == (1, 1, 1, 1)


def test_what_cannot_be_kept_is_named(desk: Desk) -> None:
    thread = DeskThread(desk)
    failed = thread.run_of("Odd", {})
    assert failed["status"] == "error"
    assert "the result of odd['lock'] is a lock" in failed["error"]["message"]


def test_a_cancelled_flow_takes_a_new_input(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("Counted", {"limit": 3})
    thread.until_it("began the second")
    thread.client.runs.cancel(thread.id, run)
    assert thread.ended(run)["status"] == "interrupted"
    thread.untell("hold")
    assert thread.run_of("Counted", {"limit": 1})["status"] == "success"
    assert thread.values()["n"] == 1
