"""What a runner reports to wait is kept, shown, and answered by id: each answer once, whatever dies in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.desks import Desk, asking
from tests.support.waiting_sync import until

from agentvisor import interrupts
from agentvisor.core.errors import Conflict, InvalidInput, NotFound

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


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


def test_what_is_asked_can_be_answered_before_the_run_that_asks_has_ended(desk: Desk) -> None:
    desk.tell("linger", "yes")
    asking = desk.begin(input={"ask": {"a": {}, "b": {}}})
    desk.until_it("reported 2")
    answering = desk.post("interrupts/a", answer="early")
    assert answering.status_code == 200, answering.text
    assert "answered already" in desk.refused("interrupts/a", answer="twice")["message"]
    desk.tell("leave")
    assert desk.ended(asking)["status"] == "success"
    assert desk.ended(answering.json()["run_id"])["status"] == "success"
    assert desk.waits() == ["b"]
    assert desk.did()['took a: "early"'] == 1


def test_new_input_that_was_accepted_before_something_was_asked_ends_before_it_can_harm_it(desk: Desk) -> None:
    desk.tell("hold", "yes")
    asking = desk.begin(input={"ask": {"a": {}}})
    desk.until_it("held")
    behind = desk.begin(input={"ask": {"b": {}}})
    answering = desk.post("runs", assistant_id="desk", command={"resume": "to nobody knows what"}).json()["run_id"]
    desk.tell("go on")
    assert desk.ended(asking)["status"] == "success"
    for late in (behind, answering):
        ended = desk.ended(late)
        assert (ended["status"], ended["error"]["error"], ended["attempts"]) == ("error", "Conflict", [])
    assert desk.waits() == ["a"]
    desk.answered(a=1)
    assert [what for what in desk.did() if "took" in what] == ["took a: 1"]


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


def test_a_graphs_interrupts_are_answered_once_however_many_answer_at_once(desk: Desk) -> None:
    first, second = asking(desk, "graph")
    assert [(one["belongs_to"]["node"], one["kind"]) for one in (first, second)] == [
        ("first", "question"),
        ("second", "other"),
    ]
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
    page = httpx.get(url, params={"limit": 1, "kind": "listed"})
    assert [one["id"] for one in page.json()] == [others[0]["id"]]  # of the newest thread, with all its interrupts
    # What is answered meanwhile moves nothing out of the next page.
    other.answered(**{others[0]["id"]: 1})
    until(lambda: listed() == [mine[0]["id"]], pause=0.1)
    following = {"limit": 1, "kind": "listed", "after": page.headers["x-pagination-next"]}
    last = httpx.get(url, params=following)
    assert [one["id"] for one in last.json()] == [mine[0]["id"]]
    found = last.json()
    while "x-pagination-next" in last.headers:  # other tests' threads wait too, for what is not wanted here
        last = httpx.get(url, params={**following, "after": last.headers["x-pagination-next"]})
        found += last.json()
    assert [one["id"] for one in found] == [mine[0]["id"]]
    assert httpx.get(url, params={"after": "nonsense"}).status_code == 422
    desk.answered(**{mine[0]["id"]: 1})
    until(lambda: listed() == [], pause=0.1)


def test_a_program_outside_lists_answers_and_gives_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_ENDPOINT", desk.host.url)
    desk.ask("v1:tool_call:t/1", "b", kind="approval", belongs_to={"tool": "pay"}, schema={"type": "string"})
    first, second = interrupts.list(desk.id)
    assert (first.id, first.kind, first.value, first.agent) == (
        "v1:tool_call:t/1",
        "approval",
        "v1:tool_call:t/1?",
        "desk",
    )
    assert (first.belongs_to, first.schema, first.deadline) == ({"tool": "pay"}, {"type": "string"}, None)
    assert interrupts.list(desk.id, kind="other") == []
    until(lambda: first in interrupts.list(agent="desk", kind="approval"), pause=0.1)
    desk.ended(interrupts.answer(desk.id, first.id, "yes"))
    with pytest.raises(Conflict, match="does not wait"):
        interrupts.answer(desk.id, first.id, "yes")
    assert interrupts.list(desk.id) == [second]
    desk.ended(interrupts.answer_all(desk.id, {"b": 1}))
    desk.ask("c")
    assert interrupts.abandon(desk.id) == ["c"]
    assert interrupts.list(desk.id) == []
    with pytest.raises(NotFound):
        interrupts.list("nope")


def test_an_answer_on_a_copy_names_the_agent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_ENDPOINT", desk.host.url)
    first, second = asking(desk, "graph", deadline=60)
    copy = desk.client.threads.copy(desk.id)
    assert [one.agent for one in interrupts.list(copy["thread_id"])] == [None, None]
    with pytest.raises(InvalidInput, match="agent="):
        interrupts.answer(copy["thread_id"], first["id"], "yes")
    run = interrupts.answer_all(copy["thread_id"], {first["id"]: "one", second["id"]: "two"}, agent="graph")
    assert desk.client.runs.join(copy["thread_id"], run)["second"] == "two"
    assert desk.waits() == [first["id"], second["id"]]
