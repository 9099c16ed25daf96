"""What a runner reports to wait is kept, shown, and answered by id: each answer once, whatever dies in between."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.support.temporal import TemporalProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


NAMES = {"desk": "desk.py:run", "plain": "deadlines.py:plain", "graph": "deadlines.py:graph"}


class Desk(VictimThread):
    """A thread of an agent that asks: `desk`, where a test does not say otherwise."""

    agent = "desk"

    def ask(self, *ids: str, takes_input: bool = False, **fields: Any) -> dict[str, Any]:
        given = {"ask": dict.fromkeys(ids, fields), "takes_input": takes_input}
        return self.ended(self.begin(input=given))

    def begin(self, **body: Any) -> str:
        response = self.post("runs", assistant_id=self.agent, **body)
        assert response.status_code == 200, response.text
        return str(response.json()["run_id"])

    def post(self, path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.host.url}/threads/{self.id}/{path}", json=body, timeout=30)

    def waits(self) -> list[str]:
        """What waits: all that show it agree."""
        listed = [one["id"] for one in self.records()]
        assert [one["id"] for one in self.client.threads.get_state(self.id)["interrupts"]] == listed
        return listed

    def waits_for_none(self) -> bool:
        return self.records() == [] and self.status() != "busy"

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
            body["assistant_id"] = self.agent
        response = self.post(path, **body)
        assert response.status_code == 409, response.text
        assert self.client.threads.get(self.id) == before
        return dict(response.json())


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    project = Project(tmp_path_factory.mktemp("desk"), temporal, "zygote", NAMES)
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def desk(desks: Project) -> Desk:
    return Desk(desks, desks.hosts[0])


def asking(desk: Desk, agent: str, **how: Any) -> list[dict[str, Any]]:
    """What waits when this agent has asked so."""
    desk.agent = agent
    desk.ask("a", **named_for_reports(how)) if agent == "desk" else desk.ended(desk.begin(input={"how": how}))
    return desk.records()


def named_for_reports(how: dict[str, Any]) -> dict[str, Any]:
    return {"deadline_seconds" if name == "deadline" else name: value for name, value in how.items()}


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


AGENTS = ["desk", "plain", "graph"]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_overdue_is_closed_and_the_run_has_timed_out(desk: Desk, agent: str) -> None:
    (overdue, *others) = asking(desk, agent, deadline=1.5, kind="approval", schema={"type": "string"})
    assert (overdue["kind"], overdue["on_deadline"], overdue["schema"]) == ("approval", "cancel", {"type": "string"})
    assert overdue["deadline"] > overdue["created_at"]
    assert [one["deadline"] for one in others] == [None] * (agent == "graph")
    until(lambda: desk.records() == [], seconds=30, pause=0.1)
    (run,) = desk.client.runs.list(desk.id)
    assert (run["status"], run["error"]["error"]) == ("timeout", "InterruptExpired")  # type: ignore[typeddict-item]
    assert overdue["id"] in run["error"]["message"]  # type: ignore[typeddict-item]
    assert desk.status() == "error"
    assert desk.waits() == []
    for one in (overdue, *others):
        assert "does not wait" in desk.refused(f"interrupts/{one['id']}", answer="late")["message"]
        assert "does not wait" in desk.refused(command={"resume": {one["id"]: "late"}})["message"]
    # Nobody has to give up what is closed already.
    again = {"ask": {"b": {}}} if agent == "desk" else {"how": {}}
    assert desk.ended(desk.begin(input=again))["status"] == "success"
    assert desk.status() == "interrupted"
    assert desk.did()["forgot"] == (agent == "desk")
    assert not any("took" in what for what in desk.did())


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_overdue_gets_its_default_answer_as_if_a_person_had_given_it(desk: Desk, agent: str) -> None:
    default = {"decision": "no"}
    _, *others = asking(desk, agent, deadline=1.5, on_deadline="answer", default_answer=default)
    until(lambda: len(desk.client.runs.list(desk.id)) == 2, seconds=30, pause=0.1)
    run = desk.ended(desk.client.runs.list(desk.id)[0]["run_id"])
    assert (run["status"], run["metadata"]["answered_by"]) == ("success", "deadline")
    took = [what for what in desk.did() if "took" in what]
    assert len(took) == 1
    assert "decision" in took[0]
    # What has no deadline goes on waiting.
    assert desk.waits() == [one["id"] for one in others]
    for one in others:
        desk.answered(**{one["id"]: "yes"})
    assert desk.status() == "idle"


def test_an_answer_in_time_leaves_nothing_to_expire(desk: Desk) -> None:
    first, second = asking(desk, "graph", deadline=3, on_deadline="answer", default_answer="late")
    desk.answered(**{first["id"]: "in time"})
    again = Desk(desk.project, desk.host)
    asking(again, "graph", deadline=3.1, on_deadline="answer", default_answer="late")
    until(lambda: again.did()["first took late"] == 1, seconds=30, pause=0.1)
    assert desk.waits() == [second["id"]]
    assert [what for what in desk.did() if "first" in what] == ["first took in time"]


def test_a_graphs_interrupts_are_answered_once_however_many_answer_at_once(desk: Desk) -> None:
    first, second = asking(desk, "graph")
    assert first["belongs_to"]["node"] == "first"
    assert desk.refused(command={"resume": "which?"})["metadata"]["interrupts"] == f"{first['id']},{second['id']}"

    def code(number: int) -> int:
        body = {"assistant_id": "graph", "command": {"resume": {first["id"]: number}}}
        path = f"interrupts/{first['id']}"
        return (desk.post("runs", **body) if number % 2 else desk.post(path, answer=number)).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(code, range(8))) == [200, *[409] * 7]
    for run in desk.client.runs.list(desk.id):
        assert desk.ended(run["run_id"])["status"] == "success"
    assert "does not wait" in desk.refused(f"interrupts/{first['id']}", answer=1)["message"]
    assert desk.waits() == [second["id"]]
    desk.ended(desk.begin(command={"resume": "scalar"}))
    assert sum(desk.did().values()) == 2
    assert "nothing waits" in desk.refused(command={"resume": "scalar"})["message"]


def test_a_graph_takes_new_input_while_it_waits_and_what_was_asked_is_gone(desk: Desk) -> None:
    first, _ = asking(desk, "graph", deadline=600)
    desk.ended(desk.begin(input={"how": {}}))
    assert desk.records()[0]["deadline"] is None
    assert "does not wait" in desk.refused(f"interrupts/{first['id']}", answer=1)["message"]


def test_all_that_waits_is_listed_over_all_threads(desks: Project) -> None:
    desk, other = (Desk(desks, desks.hosts[0]) for _ in range(2))
    mine = asking(desk, "plain", kind="listed")
    others = [*asking(other, "graph", kind="listed")]
    url = f"{desk.host.url}/interrupts"

    def listed(**query: Any) -> list[str]:
        return [one["id"] for one in httpx.get(url, params={"kind": "listed", "limit": 1000, **query}).json()]

    # Temporal's visibility lags a little.
    until(lambda: set(listed()) == {mine[0]["id"], others[0]["id"]}, pause=0.1)
    assert listed(agent="plain") == [mine[0]["id"]]
    whole = httpx.get(url, params={"limit": 1000}).json()
    assert [one for one in whole if one["thread_id"] == other.id] == others
    page = httpx.get(url, params={"limit": 1})
    assert len({one["thread_id"] for one in page.json()}) == 1
    assert page.headers["x-pagination-next"] == "1"
    desk.answered(**{mine[0]["id"]: 1})
    until(lambda: listed() == [others[0]["id"]], pause=0.1)


def test_answers_and_deadlines_outlive_everything_that_is_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    own_project.names = NAMES
    desk = Desk(own_project, own_project.host(FOLDER=str(own_project.folder)))
    late = Desk(own_project, desk.host)

    def restart() -> None:
        temporal_process.kill()
        desk.host.kill()
        asyncio.run(temporal_process.start())
        host = own_project.host(FOLDER=str(own_project.folder))
        desk.on(host)
        late.on(host)

    desk.ask("a", "b")
    asking(late, "graph", deadline=0.5, on_deadline="answer", default_answer="default")
    restart()
    assert desk.waits() == ["a", "b"]
    desk.answered(b=1)
    restart()
    assert "does not wait" in desk.refused("interrupts/b", answer=2)["message"]
    assert desk.waits() == ["a"]
    ended = desk.answered(a=2)
    assert desk.client.runs.join(desk.id, ended["run_id"]) == {"answers": {"b": 1, "a": 2}}
    until(lambda: late.did()["first took default"] == 1, seconds=30, pause=0.1)
    assert len(late.records()) == 1
