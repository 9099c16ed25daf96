"""Entrypoints of LangGraph's functional API run unmodified, and a task that has finished is not done again."""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def test_a_task_that_finished_is_not_done_again_after_a_kill_or_an_answer(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.tell("strike", "in check")
    asked = thread.ended(thread.graph("functional:writes", {"topic": "tea"}))
    assert (asked["status"], [one["ending"] for one in asked["attempts"]]) == ("success", ["agent_signal", "paused"])
    (question,) = thread.client.threads.get_state(thread.id)["interrupts"]
    assert question["value"] == {"publish": "checked draft on tea"}
    # The second task was cut off by the kill: it alone is there twice.
    assert thread.did() == {"drafted tea": 1, "checked draft on tea": 2}
    answered = thread.ended(thread.graph("functional:writes", None, command={"resume": "yes"}))
    assert answered["status"] == "success", answered["error"]
    assert thread.did() == {"drafted tea": 1, "checked draft on tea": 2, "published yes": 1}
    assert thread.client.runs.join(thread.id, answered["run_id"]) == {
        "text": "checked draft on tea", "word": "yes", "count": 1,
    }  # fmt: skip
    thread.ended(thread.graph("functional:writes", {"topic": "milk"}))
    again = thread.ended(thread.graph("functional:writes", None, command={"resume": "no"}))
    # What `entrypoint.final` saved is what the next run is told, and not what it returned.
    assert thread.client.runs.join(thread.id, again["run_id"])["count"] == 2  # type: ignore[call-overload, index]


def test_tasks_that_run_at_once_and_what_was_returned_before(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    ended = thread.ended(thread.graph("functional:fans_out", ["a", "b", "c"]))  # type: ignore[arg-type]
    assert thread.client.runs.join(thread.id, ended["run_id"]) == ["draft on a", "draft on b", "draft on c"]
    other = VictimThread(warm_victims, warm_victims.hosts[0])
    for given in ("one", "two"):
        ended = other.ended(other.graph("functional:remembers", given))  # type: ignore[arg-type]
    assert other.client.runs.join(other.id, ended["run_id"]) == ["one", "two"]
