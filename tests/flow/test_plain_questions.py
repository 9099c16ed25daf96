"""A plain agent asks with `agentvisor.interrupt`, and goes on with the answer in a process of its own."""

from collections.abc import Callable

import pytest
from langgraph_sdk.errors import ConflictError
from tests.flow.charging import questions, resumed
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

from agentvisor.testing import kill

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("place", ["", "after send"])
def test_a_plain_agent_asks_and_goes_on_with_the_answers(warm_victims: Project, place: str) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.call("charges:talks", "tea"))
    if place:
        thread.tell("strike", place)
    for number, answer in enumerate(("Ann", "yes", 5)):
        (asked,) = questions(thread)
        assert asked["value"] == {"ask": ("name", "sure", "rating")[number]}
        assert thread.status() == "interrupted"
        ended = thread.ended(resumed(thread, "plain", answer))
    assert ended["status"] == "success", ended["error"]
    assert thread.client.threads.get_state(thread.id)["values"] == {
        "sent": {"to": "Ann", "sure": "yes"}, "rating": 5, "given": "tea",
    }  # fmt: skip
    assert thread.did()["sent Ann"] == 1
    assert questions(thread) == []
    assert thread.status() == "idle"


def test_a_new_input_begins_anew_without_the_old_answers(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.call("charges:talks", "tea"))
    thread.ended(resumed(thread, "plain", "Ann"))
    thread.ended(thread.call("charges:talks", "coffee"))
    (asked,) = questions(thread)
    assert asked["value"] == {"ask": "name"}
    refused = thread.ended(resumed(thread, "plain", {"not": "an id"}))
    assert refused["status"] == "success", "any JSON is an answer where one question waits"


def test_an_answer_to_a_question_that_is_answered_already_is_none_to_the_next(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.call("charges:talks", "tea"))
    (first,) = questions(thread)
    thread.ended(resumed(thread, "plain", {first["id"]: "Ann"}))
    (second,) = questions(thread)
    for stale in ({first["id"]: "Ann"}, {"0" * 32: "x", second["id"]: "yes"}):
        with pytest.raises(ConflictError, match="does not wait"):
            resumed(thread, "plain", stale)
        assert questions(thread) == [second]
    for answer in ("yes", 5):
        ended = thread.ended(resumed(thread, "plain", answer))
    assert ended["status"] == "success"
    # Nothing waits any more: the function is not called for an answer to nothing.
    with pytest.raises(ConflictError, match="nothing waits"):
        resumed(thread, "plain", "late")
    assert thread.did()["began"] == 4


@pytest.mark.parametrize("dies", ["after:question:2", "before:question:3"])
def test_of_two_answers_that_a_run_brings_none_is_lost_where_it_dies_between_them(
    tested_hosts: Callable[[str], Project], dies: str
) -> None:
    project = tested_hosts("zygote")
    assert project.tested is not None
    thread = VictimThread(project, project.tested)
    thread.ended(thread.call("charges:asks_two", ["Ann", "Bob"]))
    asked = {one["value"]["ask"]: one["id"] for one in questions(thread)}
    thread.inject(kill(at=dies))
    ended = thread.ended(resumed(thread, "plain", {asked["Ann"]: "yes", asked["Bob"]: "no"}))
    assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "completed"]
    assert thread.client.runs.join(thread.id, ended["run_id"]) == ["yes", "no"]
