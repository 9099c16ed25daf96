"""What a runner reports to wait is kept, shown, and answered by id: each answer once, whatever dies in between."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


class Desk(VictimThread):
    """A thread of the agent `desk`."""

    def ask(self, *ids: str, takes_input: bool = False, **fields: Any) -> dict[str, Any]:
        given = {"ask": dict.fromkeys(ids, fields), "takes_input": takes_input}
        return self.ended(self.begin(input=given))

    def begin(self, **body: Any) -> str:
        response = self.post("runs", assistant_id="desk", **body)
        assert response.status_code == 200, response.text
        return str(response.json()["run_id"])

    def post(self, path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.host.url}/threads/{self.id}/{path}", json=body, timeout=30)

    def waits(self) -> list[str]:
        """What waits: all that show it agree."""
        listed = [one["id"] for one in self.records()]
        assert [one["id"] for one in self.client.threads.get_state(self.id)["interrupts"]] == listed
        return listed

    def records(self) -> list[dict[str, Any]]:
        return list(httpx.get(f"{self.host.url}/threads/{self.id}/interrupts").json())

    def answered(self, **answers: Any) -> dict[str, Any]:
        response = self.post("interrupts", answers=answers)
        assert response.status_code == 200, response.text
        return self.ended(str(response.json()["run_id"]))

    def refused(self, path: str = "runs", **body: Any) -> dict[str, Any]:
        """What a refusal with 409 says; nothing has changed by it."""
        before = self.client.threads.get(self.id)
        if path == "runs":
            body["assistant_id"] = "desk"
        response = self.post(path, **body)
        assert response.status_code == 409, response.text
        assert self.client.threads.get(self.id) == before
        return dict(response.json())


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    project = Project(tmp_path_factory.mktemp("desk"), temporal, "zygote", {"desk": "desk.py:run"})
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def desk(desks: Project) -> Desk:
    return Desk(desks, desks.hosts[0])


def test_what_is_reported_waits_and_is_answered_in_part_and_in_any_order(desk: Desk) -> None:
    asked = desk.ask("a", "b", "c", kind="approval", belongs_to={"tool": "pay", "tool_call_id": "t1"}, schema={})
    assert asked["status"] == "success"
    assert desk.status() == "interrupted"
    assert desk.waits() == ["a", "b", "c"]
    record = desk.records()[0]
    assert record.items() >= {
        "thread_id": desk.id, "run_id": asked["run_id"], "agent": "desk", "kind": "approval", "value": "a?",
        "belongs_to": {"tool": "pay", "tool_call_id": "t1"}, "schema": {}, "deadline": None,
    }.items()  # fmt: skip
    assert desk.answered(b=2)["status"] == "success"
    assert desk.waits() == ["a", "c"]
    assert desk.status() == "interrupted"
    response = desk.post("interrupts/c", answer={"deep": [None]})
    desk.ended(response.json()["run_id"])
    assert desk.waits() == ["a"]
    assert desk.records()[0]["created_at"] == record["created_at"]
    # One waits: the answer needs no id.
    ended = desk.ended(desk.begin(command={"resume": "yes"}))
    assert desk.client.runs.join(desk.id, ended["run_id"]) == {"answers": {"b": 2, "c": {"deep": [None]}, "a": "yes"}}
    assert desk.waits() == []
    assert desk.status() == "idle"


def test_answers_to_what_does_not_wait_are_refused_and_change_nothing(desk: Desk) -> None:
    desk.ask("a", "b")
    assert "nothing waits" not in desk.refused(command={"resume": "yes"})["message"]
    assert desk.refused(command={"resume": "yes"})["metadata"]["interrupts"] == "a,b"
    assert "does not wait" in desk.refused(command={"resume": {"a": 1, "x": 2}})["message"]
    assert "does not wait" in desk.refused("interrupts/x", answer=1)["message"]
    assert "does not wait" in desk.refused("interrupts", answers={"a": 1, "x": 1})["message"]
    desk.answered(a=1)
    for stale in ({"a": 1}, {"a": 1, "b": 2}):
        assert "does not wait" in desk.refused(command={"resume": stale})["message"]
    assert "does not wait" in desk.refused("interrupts/a", answer=1)["message"]
    assert desk.waits() == ["b"]
    desk.answered(b=2)
    assert "does not wait" in desk.refused(command={"resume": {"b": 2}})["message"]
    assert "nothing waits" in desk.refused(command={"resume": "late"})["message"]
    assert desk.did()["took a: 1"] == 1


def test_of_answers_that_come_at_once_one_is_accepted(desk: Desk) -> None:
    desk.ask("a", "b")
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda number: desk.post("interrupts/a", answer=number).status_code, range(8)))
    assert sorted(codes) == [200, *[409] * 7]
    with ThreadPoolExecutor(8) as pool:
        answers = [{"resume": {"b": number}} for number in range(8)]
        codes = list(pool.map(lambda one: desk.post("runs", assistant_id="desk", command=one).status_code, answers))
    assert sorted(codes) == [200, *[409] * 7]
    for run in desk.client.runs.list(desk.id):
        assert desk.ended(run["run_id"])["status"] == "success"
    took = [what for what in desk.did() if what.startswith("took")]
    assert len(took) == 2
    assert desk.waits() == []


def test_new_input_is_refused_while_one_waits_unless_it_is_given_up(desk: Desk) -> None:
    desk.ask("a", "b")
    refused = desk.refused(input={"ask": {"new": {}}})
    assert "a, b" in refused["message"]
    assert "on_interrupt" in refused["message"]
    desk.ended(desk.begin(input={"ask": {"new": {}}}, on_interrupt="abandon"))
    assert desk.did()["forgot"] == 1
    assert desk.waits() == ["new"]
    assert "does not wait" in desk.refused("interrupts/a", answer=1)["message"]
    # Given up without new input: the next run makes the framework forget.
    response = httpx.delete(f"{desk.host.url}/threads/{desk.id}/interrupts")
    assert response.json() == {"abandoned": ["new"]}
    assert desk.waits() == []
    assert desk.status() == "idle"
    desk.ask("newer", takes_input=True)
    assert desk.did()["forgot"] == 2
    # Where the framework takes new input, nobody needs to give anything up.
    desk.ask("newest")
    assert desk.did()["forgot"] == 2
    assert desk.waits() == ["newest"]


@pytest.mark.parametrize("place", ["before report", "after report"])
def test_a_run_that_dies_with_an_answer_gets_it_again(desk: Desk, place: str) -> None:
    desk.ask("a", "b")
    desk.tell("die", place)
    ended = desk.answered(a=[1])
    assert [one["ending"] for one in ended["attempts"]] == ["agent_signal", "paused"]
    assert desk.did()["took a: [1]"] == 2
    assert desk.waits() == ["b"]
    desk.answered(b=0)
    assert desk.waits() == []
