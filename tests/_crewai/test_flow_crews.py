"""Crews on real hosts: a task that has ended is not run again, whatever ends the process."""

import pytest
from tests._crewai.conftest import Desk
from tests._crewai.thread import DeskThread
from tests.flow.deaths import kill

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

LETTER = {"raw": "Dear customer, it is done.", "json_dict": None, "pydantic": None}


def test_a_finished_task_is_not_run_again_after_the_agent_is_killed(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("crew", {"order": "7"}, stream_mode=["custom"])
    kill(thread.until_it("began booking"))
    thread.until_it("began booking", 2)
    thread.tell("gate")
    parts = [one for one in thread.client.runs.join_stream(thread.id, run) if one.event == "custom"]
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    did = thread.did()
    # The same agent has all three tasks: the second does not replay the first's work (crewAI#6113).
    assert (did["looked up 7"], did["asked to find"], did["booked"], did["told with booked"]) == (1, 1, 1, 1)
    assert thread.values() == LETTER
    steps = [(one.data["event"], one.data["task"]) for one in parts if one.data["event"] != "llm_chunk"]
    find, booking = "Find the order 7", "Book the refund"
    assert steps == [
        ("task_started", find), ("task_finished", find), ("task_started", booking),
        ("task_restored", find), ("task_started", booking), ("task_finished", booking),
        ("task_started", "tell"), ("task_finished", "tell"),
    ]  # fmt: skip
    told = "".join(one.data["text"] for one in parts if one.data["event"] == "llm_chunk" and one.data["task"] == "tell")
    assert told == "Dear customer, it is done."


def test_tasks_side_by_side_are_kept_one_by_one(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("beside", stream_mode=["custom"])
    pid = thread.until_it("began booking")
    thread.until_told(run, "task_finished", "Find the order 7")
    kill(pid)
    thread.until_it("began booking", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    did = thread.did()
    assert (did["looked up 7"], did["booked"], did["told with booked"]) == (1, 1, 1)


def test_a_crew_with_a_manager_goes_on_with_the_task_that_was_cut_off(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("managed")
    kill(thread.until_it("began booking"))
    thread.until_it("began booking", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    assert (thread.did()["looked up 7"], thread.did()["booked"]) == (1, 1)


def test_conditions_are_asked_again_about_the_same_outputs(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("conditional")
    kill(thread.until_it("began booking"))
    thread.until_it("began booking", 2)
    thread.tell("gate")
    assert thread.ended(run)["status"] == "success"
    assert thread.values()["raw"] == "booking done"
    assert (thread.did()["looked up 7"], thread.did()["booked"]) == (1, 1)


def test_a_class_with_crewbase_is_run_as_it_is(desk: Desk) -> None:
    thread = DeskThread(desk)
    assert thread.run_of("Written")["status"] == "success"
    assert thread.values() == LETTER


def test_an_error_is_the_users_and_a_run_without_input_goes_on_after_it(desk: Desk) -> None:
    thread = DeskThread(desk)
    failed = thread.run_of("fails")
    assert (failed["status"], failed["error"]["error"]) == ("error", "ValueError")
    assert failed["error"]["message"] == "the letter is not good"
    raised = thread.traceback()
    assert 'raise ValueError("the letter is not good")' in raised
    assert raised.splitlines()[1].split('"')[1].endswith("crews.py")
    thread.tell("mended")
    assert thread.run_of("fails")["status"] == "success"
    assert thread.did()["looked up 7"] == 1
    # It has ended, so that nothing is left to go on with.
    assert thread.run_of("fails")["status"] == "success"
    assert thread.did()["looked up 7"] == 2


def test_a_changed_crew_does_not_take_the_outputs_of_the_old_one(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("crew", {"order": "7"})
    pid = thread.until_it("began booking")
    thread.tell("changed")
    kill(pid)
    failed = thread.ended(run)
    assert failed["status"] == "error"
    assert "task 1 of the crew has changed since it was finished" in failed["error"]["message"]
    assert "Find the parcel" in failed["error"]["message"]
    thread.untell("changed")
    thread.tell("gate")
    # As it was it goes on, without an input; with one it begins anew.
    assert thread.run_of("crew")["status"] == "success"
    assert thread.did()["looked up 7"] == 1
    assert thread.run_of("crew", {"order": "7"})["status"] == "success"
    assert thread.did()["looked up 7"] == 2


def test_an_input_that_is_no_object_is_refused(desk: Desk) -> None:
    thread = DeskThread(desk)
    failed = thread.run_of("crew", "seven")
    assert failed["status"] == "error"
    assert "the input of a crew is an object" in failed["error"]["message"]


def test_a_cancelled_crew_takes_a_new_input(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("crew", {"order": "7"})
    thread.until_it("began booking")
    thread.client.runs.cancel(thread.id, run)
    assert thread.ended(run)["status"] == "interrupted"
    thread.untell("hold")
    assert thread.run_of("crew", {"order": "8"})["status"] == "success"
    assert thread.values() == LETTER
