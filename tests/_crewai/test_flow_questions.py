"""People are asked by crews and flows, and their answers are taken in other processes."""

import pytest
from langgraph_sdk.errors import ConflictError
from tests._crewai.conftest import Desk
from tests._crewai.thread import DeskThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def test_a_task_with_human_input_goes_on_from_its_draft(desk: Desk) -> None:
    thread = DeskThread(desk)
    paused = thread.run_of("asks")
    # A pause is no failure (crewAI#4200).
    assert paused["status"] != "error", paused["error"]
    assert thread.status() == "interrupted"
    (asked,) = thread.questions()
    assert asked["value"]["draft"] == "first draft"
    assert asked["value"]["agent"] == "clerk"
    thread.answer("asks", "shorter, please")
    (again,) = thread.questions()
    assert again["value"]["draft"] == "second draft"
    assert again["id"] != asked["id"]
    for stale in ({asked["id"]: "again"}, {"0" * 32: "x"}):
        with pytest.raises(ConflictError):
            thread.answer("asks", stale)
    assert thread.questions() == [again]
    with pytest.raises(ConflictError):
        thread.start("asks", {"order": "8"})
    assert thread.answer("asks", {again["id"]: ""})["status"] == "success"
    assert thread.values()["raw"] == "second draft"
    assert thread.did()["looked up 7"] == 1
    assert thread.status() == "idle"
    with pytest.raises(ConflictError):
        thread.answer("asks", "late")


@pytest.mark.parametrize("order", [("Draft a letter", "Draft a note"), ("Draft a note", "Draft a letter")])
def test_two_people_answer_in_either_order(desk: Desk, order: tuple[str, str]) -> None:
    thread = DeskThread(desk)
    thread.run_of("both_ask")
    asked = {one["value"]["task"]: one["id"] for one in thread.questions()}
    assert asked.keys() == set(order)
    thread.answer("both_ask", {asked[order[0]]: ""})
    (left,) = thread.questions()
    assert left["id"] == asked[order[1]]
    assert thread.answer("both_ask", {left["id"]: ""})["status"] == "success"
    assert thread.values()["raw"] == "Dear customer, it is done."


def test_two_people_answer_at_once(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("both_ask")
    answers = {one["id"]: "" for one in thread.questions()}
    assert len(answers) == 2
    assert thread.answer("both_ask", answers)["status"] == "success"


def test_feedback_routes_a_flow_and_no_finished_method_is_called_again(desk: Desk) -> None:
    thread = DeskThread(desk)
    paused = thread.run_of("Reviewed", {"topic": "tea"})
    assert paused["status"] != "error", paused["error"]
    (asked,) = thread.questions()
    assert asked["value"] == {
        "message": "Good?", "output": {"text": "draft 1"}, "outcomes": ["approved", "rejected"],
    }  # fmt: skip
    thread.answer("Reviewed", "no, not at all")  # the model takes it for "rejected"
    (again,) = thread.questions()
    assert again["value"]["output"] == {"text": "draft 2"}
    with pytest.raises(ConflictError):
        thread.answer("Reviewed", {asked["id"]: "approved"})
    ended = thread.answer("Reviewed", "Approved")
    assert ended["status"] == "success", ended["error"]
    assert thread.values() == {"sent": {"text": "draft 2"}, "said": "Approved", "outcome": "approved"}
    assert (thread.did()["began"], thread.did()["drafted"], thread.did()["sent"]) == (1, 2, 1)


def test_feedback_on_a_flow_inside_of_another_is_said_of_the_draft_that_was_shown(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("Starts", {})
    (asked,) = thread.questions()
    assert thread.answer("Starts", "fine")["status"] == "success"
    assert thread.values() == {"said": "fine", "of": asked["value"]["output"], "drafts": 1}
    assert (thread.did()["drafted"], thread.did()["told"]) == (1, 1)


def test_feedback_on_a_flow_that_a_tool_has_started_comes_to_it(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("checks", {})
    assert len(thread.questions()) == 1
    assert thread.answer("checks", "fine")["status"] == "success"
    assert thread.values()["raw"] == "It is checked."
    assert thread.did()["told"] == 1


def test_feedback_outlives_the_host(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("review", {"topic": "tea"})
    desk.hosts[-1].kill()
    desk.host()
    thread.on(desk.hosts[-1])
    assert thread.answer("review", "approved")["status"] == "success"
    assert (thread.did()["began"], thread.did()["drafted"], thread.did()["sent"]) == (1, 1, 1)


def test_a_provider_of_the_flows_own_is_called_once_and_its_persistence_is_the_threads(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("Notified", {})
    assert [one["value"]["output"] for one in thread.questions()] == ["a draft"]
    assert thread.answer("Notified", "fine")["status"] == "success"
    assert thread.values() == {"said": "fine", "of": "a draft", "n": 1}
    assert thread.did() == {"notified": 1}
    assert "the flow's Elsewhere is replaced by ThreadPersistence" in desk.hosts[-1].log.read_text()


def test_ask_is_a_question_too(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("Asked", {})
    (first,) = thread.questions()
    assert first["value"] == {"message": "Your name?"}
    thread.answer("Asked", "Ann")
    (second,) = thread.questions()
    assert second["value"] == {"message": "Your colour?"}
    thread.answer("Asked", "red")
    assert thread.values() == {"name": "Ann", "colour": "red"}
    assert thread.did() == {"heard Ann red": 1}


def test_questions_that_are_given_up_are_forgotten(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.run_of("asks")
    thread.run_of("asks", {"order": "8"}, on_interrupt="abandon")
    (asked,) = thread.questions()
    assert asked["value"]["draft"] == "first draft"
    assert thread.did()["looked up 7"] == 2
