"""A question that nobody answers ends as it was told to: closed, or with its default answer; whatever was killed."""

from __future__ import annotations

import asyncio
import re
import secrets

import httpx
import pytest
from tests.flow.conftest import DESKS, Project
from tests.flow.desks import Desk, asking
from tests.support.temporal import TemporalProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture
def desk(desks: Project) -> Desk:
    return Desk(desks, desks.hosts[0])


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
    state = desk.client.threads.get_state(desk.id)
    shown = {one["id"]: (one["kind"], one.get("deadline")) for one in state["interrupts"]}  # type: ignore[typeddict-item]
    assert shown == {one["id"]: (one["kind"], one["deadline"]) for one in (first, second)}
    assert [one for task in state["tasks"] for one in task["interrupts"]] == state["interrupts"]
    desk.answered(**{first["id"]: "in time"})
    again = Desk(desk.project, desk.host)
    asking(again, "graph", deadline=3.1, on_deadline="answer", default_answer="late")
    until(lambda: again.did()["first took late"] == 1, seconds=30, pause=0.1)
    assert desk.waits() == [second["id"]]
    assert [what for what in desk.did() if "first" in what] == ["first took in time"]


def test_answers_and_deadlines_outlive_everything_that_is_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    own_project.names = DESKS
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
    # The answer is given once; the attempt that took it may have been killed, too, and is made again.
    until(lambda: late.did()["first took default"] >= 1 and len(late.records()) == 1, seconds=60, pause=0.1)
    given, _ = late.client.runs.list(late.id)
    assert given["metadata"]["answered_by"] == "deadline"


def test_a_question_whose_pause_the_agent_swallowed_closes_nothing_at_its_deadline(desk: Desk) -> None:
    (waiting,) = asking(desk, "swallowing", deadline=0.5)
    assert desk.did()["swallowed"] == 1
    # Another thread's deadline, which is later, tells when that one has passed.
    later = Desk(desk.project, desk.host)
    asking(later, "plain", deadline=1.5)
    until(lambda: later.records() == [], seconds=30, pause=0.1)
    assert (desk.waits(), desk.status()) == ([waiting["id"]], "interrupted")
    desk.answered(**{waiting["id"]: "yes"})
    assert desk.did()["second took yes"] == 1


def expired(desk: Desk) -> dict[str, float]:
    """What the host has counted of what was overdue."""
    told = httpx.get(f"{desk.host.url}/metrics").text
    found = re.findall(r'agentvisor_interrupts_expired_total{policy="(\w+)"} (\S+)', told)
    return {policy: float(number) for policy, number in found}


def test_a_default_answer_for_which_there_is_no_room_says_so_and_what_is_overdue_is_counted(project: Project) -> None:
    project.names = DESKS
    host = project.host({"AGENTVISOR_STORAGE_MAX_STATE": "60000"}, FOLDER=str(project.folder))
    desk, other = Desk(project, host), Desk(project, host)
    asking(desk, "plain", deadline=3, on_deadline="answer", default_answer="no " * 3_500)
    filling = {"value": secrets.token_urlsafe(27_000)}
    httpx.put(f"{host.url}/threads/{desk.id}/thread-state/full", json=filling).raise_for_status()
    asking(other, "graph", deadline=0.5, on_deadline="answer", default_answer="no")
    asking(Desk(project, host), "plain", deadline=0.5)
    until(lambda: desk.records() == [], seconds=30, pause=0.1)
    (run,) = desk.client.runs.list(desk.id)
    assert run["status"] == "timeout"
    assert "the default answer could not be given" in run["error"]["message"]  # type: ignore[typeddict-item]
    assert "storage.max_state" in run["error"]["message"]  # type: ignore[typeddict-item]
    until(lambda: expired(desk) == {"answer_refused": 1, "answer": 1, "cancel": 1}, seconds=30, pause=0.1)


def test_writes_from_outside_do_not_put_a_deadline_off(desk: Desk) -> None:
    asking(desk, "plain", deadline=1.5)
    written = 0

    def is_closed() -> bool:
        nonlocal written
        written += 1
        at = f"{desk.host.url}/threads/{desk.id}/thread-state/written"
        httpx.put(at, json={"value": written}, timeout=30)
        return desk.records() == []

    until(is_closed, seconds=60, pause=0.3)
    assert desk.client.runs.list(desk.id)[0]["status"] == "timeout"
