"""What the runner contract does not say of Pydantic AI: new input beside deferred calls, approvals, wrong answers."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from tests.flow.conftest import Project
from tests.flow.desks import Desk

from agentvisor import interrupts

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    names = {"contract": "contract_pydantic_ai.py:agent", "approves": "pydantic_ai_approves.py:made"}
    project = Project(tmp_path_factory.mktemp("pydantic"), temporal, "zygote", names)
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def desk(project: Project, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(project, project.hosts[0])
    monkeypatch.setenv("AGENTVISOR_ENDPOINT", desk.host.url)
    desk.agent = "contract"
    return desk


def reply(desk: Desk, **body: Any) -> Any:
    run = desk.ended(desk.begin(**body))
    assert run["status"] == "success", run["error"]
    return desk.client.runs.join(desk.id, run["run_id"])


def test_new_input_beside_a_deferred_call_is_refused_unless_that_is_given_up(desk: Desk) -> None:
    reply(desk, input="ask")
    (asked,) = desk.records()
    assert (asked["kind"], asked["value"]) == ("result", {"tool": "ask", "args": {"what": "Which?"}})
    assert "waits for an answer" in desk.refused(input="tea")["message"]
    assert reply(desk, input="tea", on_interrupt="abandon") == "2: tea"
    assert (desk.waits(), desk.status()) == ([], "idle")
    # What was given up does not come back, though a later run brings no input.
    assert desk.ended(desk.begin(input=None))["status"] == "error"


def test_what_was_given_up_does_not_come_back_where_the_next_run_has_no_input(desk: Desk) -> None:
    desk.agent = "approves"
    reply(desk, input="pay")
    interrupts.abandon(desk.id)
    assert reply(desk, input=None).startswith("told ")
    assert (desk.waits(), desk.status(), desk.did()["paid 1"]) == ([], "idle", 0)


@pytest.mark.parametrize(
    "answer, done",
    [(True, "paid 1"), ({"approved": True, "args": {"amount": 2}}, "paid 2"), (False, None),
     ({"approved": False, "message": "no"}, None)],
)  # fmt: skip
def test_a_tool_that_needs_approval_is_called_once_it_has_it(desk: Desk, answer: Any, done: str | None) -> None:
    desk.agent = "approves"
    reply(desk, input="pay")
    (asked,) = desk.records()
    assert (asked["kind"], asked["value"]) == ("confirmation", {"tool": "pay", "args": {"amount": 1}})
    assert desk.answered(**{asked["id"]: answer})["status"] == "success"
    assert [what for what in desk.did() if "paid" in what] == ([done] if done else [])
    assert desk.status() == "idle"


def test_an_answer_that_is_no_approval_is_an_error_of_its_run_and_the_call_waits_on(desk: Desk) -> None:
    desk.agent = "approves"
    reply(desk, input="pay")
    (asked,) = desk.records()
    run = desk.answered(**{asked["id"]: "perhaps"})
    assert "is no approval" in run["error"]["message"]
    assert desk.waits() == [asked["id"]]
    desk.answered(**{asked["id"]: True})
    assert desk.did()["paid 1"] == 1


@pytest.mark.parametrize("answer, paid", [(True, 1), (False, 0)])
def test_what_was_answered_waits_no_more_where_the_model_then_fails(desk: Desk, answer: Any, paid: int) -> None:
    desk.agent = "approves"
    reply(desk, input="pay")
    (asked,) = desk.records()
    desk.tell("fail", "yes")
    assert "the model is away" in desk.answered(**{asked["id"]: answer})["error"]["message"]
    assert (desk.records(), desk.status()) == ([], "error")
    # An answer that is taken now would be one to what is done.
    assert "nothing waits" in desk.refused(command={"resume": not answer})["message"]
    desk.untell("fail")
    assert reply(desk, input=None).startswith("told ")
    assert (desk.did()["paid 1"], desk.status()) == (paid, "idle")
