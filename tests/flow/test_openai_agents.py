"""What the runner contract does not say of the OpenAI Agents SDK: approvals, handoffs, calls made together, agents as
tools, and what cannot be gone on with."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from tests.flow.conftest import SDK_AGENTS, Project
from tests.flow.desks import Desk

from agentvisor import interrupts

pytest.importorskip("agents.run_state", reason="the OpenAI Agents SDK is not installed")
pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    names = {"openai_agents": f"{SDK_AGENTS}/desk_openai_agents.py:made"}
    project = Project(tmp_path_factory.mktemp("openai"), temporal, "zygote", names)
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def desk(project: Project, monkeypatch: pytest.MonkeyPatch) -> Desk:
    project.forget()
    desk = Desk(project, project.hosts[0])
    monkeypatch.setenv("AGENTVISOR_ENDPOINT", desk.host.url)
    desk.agent = "openai_agents"
    return desk


def reply(desk: Desk, **body: Any) -> Any:
    run = desk.ended(desk.begin(**body))
    assert run["status"] == "success", f"{run['error']}\n{desk.told()}"
    return desk.client.runs.join(desk.id, run["run_id"])


def last_reply(desk: Desk) -> Any:
    run = desk.client.runs.list(desk.id, limit=1)[0]
    return desk.client.runs.join(desk.id, run["run_id"])


@pytest.mark.parametrize(
    "answer, paid, told",
    [(True, 1, "told receipt 1"), ({"approved": False, "message": "Too much."}, 0, "told Too much.")],
)
def test_a_tool_that_needs_approval_is_called_once_it_has_it(desk: Desk, answer: Any, paid: int, told: str) -> None:
    reply(desk, input="pay")
    (asked,) = desk.records()
    assert (asked["kind"], asked["value"]) == ("confirmation", {"tool": "pay", "args": {"amount": 1}})
    wrong = desk.answered(**{asked["id"]: "perhaps"})
    assert "is no approval" in wrong["error"]["message"]
    assert desk.waits() == [asked["id"]]
    assert desk.answered(**{asked["id"]: answer})["status"] == "success"
    assert desk.did()["paid 1"] == paid
    assert told in str(last_reply(desk))
    assert (desk.waits(), desk.status()) == ([], "idle")
    assert reply(desk, input="tea") == "desk heard tea"


def test_two_approvals_are_given_in_part_and_in_any_order(desk: Desk) -> None:
    reply(desk, input="pay two")
    asked = {one["value"]["args"]["amount"]: one["id"] for one in desk.records()}
    desk.answered(**{asked[2]: True})
    assert desk.waits() == [asked[1]]
    desk.answered(**{asked[1]: False})
    did = desk.did()
    assert (did["paid 1"], did["paid 2"], did["noted a"]) == (0, 1, 1)


@pytest.mark.parametrize("answer, paid", [(True, 1), (False, 0)])
def test_what_was_answered_waits_no_more_where_the_model_then_fails(desk: Desk, answer: Any, paid: int) -> None:
    reply(desk, input="pay")
    (asked,) = desk.records()
    desk.tell("fail", "yes")
    assert "the model is away" in desk.answered(**{asked["id"]: answer})["error"]["message"]
    assert (desk.records(), desk.status()) == ([], "error")
    # An answer that is taken now would be one to what is done.
    assert "nothing waits" in desk.refused(command={"resume": not answer})["message"]
    desk.untell("fail")
    assert str(reply(desk, input=None)).startswith("told ")
    assert (desk.did()["paid 1"], desk.status()) == (paid, "idle")


def test_of_two_approved_calls_the_one_that_was_done_waits_no_more_where_the_other_fails(desk: Desk) -> None:
    reply(desk, input="pay and refund")
    asked = {one["value"]["tool"]: one["id"] for one in desk.records()}
    desk.tell("no money", "yes")
    run = desk.answered(**dict.fromkeys(asked.values(), True))
    assert "no money" in json.dumps(run["error"])
    assert desk.waits() == [asked["refund"]]
    desk.untell("no money")
    desk.answered(**{asked["refund"]: True})
    assert "receipt 1" in str(last_reply(desk))
    assert (desk.did()["paid 1"], desk.did()["refunded"], desk.waits()) == (1, 1, [])


def test_new_input_beside_a_call_that_waits_is_refused_unless_that_is_given_up(desk: Desk) -> None:
    reply(desk, input="pay")
    assert "waits for an answer" in desk.refused(input="tea")["message"]
    assert reply(desk, input="tea", on_interrupt="abandon") == "desk heard tea"
    assert (desk.waits(), desk.status(), desk.did()["paid 1"]) == ([], "idle", 0)
    items = desk.values()["items"]
    assert "given up" in next(one["output"] for one in items if one.get("type") == "function_call_output")


def test_what_was_given_up_does_not_come_back_where_the_next_run_has_no_input(desk: Desk) -> None:
    reply(desk, input="pay")
    interrupts.abandon(desk.id)
    assert "given up" in str(reply(desk, input=None))
    assert (desk.waits(), desk.status(), desk.did()["paid 1"]) == ([], "idle", 0)


def test_of_calls_made_together_the_finished_one_is_not_made_again_after_a_kill(desk: Desk) -> None:
    run = desk.ended(desk.begin(input="die among"))
    assert [one["ending"] for one in run["attempts"]] == ["agent_signal", "completed"], desk.told()
    did = desk.did()
    # The model: for this reply, for the last one, and in each attempt for the guard.
    assert did["traced"] == 0
    assert (did["noted a"], did["charged 3"], did["asked the model"]) == (1, 1, 4)
    assert str(last_reply(desk)) == "told noted a charged None"


def test_a_tool_that_asks_twice_beside_one_that_needs_approval(desk: Desk) -> None:
    reply(desk, input="ask and pay")
    (who,) = desk.records()
    assert (who["kind"], who["value"]) == ("question", "Who?")
    desk.answered(**{who["id"]: "Ann"})
    (more,) = desk.records()
    assert more["value"] == "And?"
    desk.answered(**{more["id"]: "Bob"})
    (approval,) = desk.records()
    assert approval["kind"] == "confirmation"
    desk.answered(**{approval["id"]: True})
    told = str(last_reply(desk))
    assert all(one in told for one in ("told Ann and Bob", "receipt 5", "noted a"))
    assert (desk.did()["noted a"], desk.did()["paid 5"]) == (1, 1)


def test_an_agent_that_is_a_tool_asks_for_approval(desk: Desk) -> None:
    reply(desk, input="inner")
    (asked,) = desk.records()
    assert asked["value"] == {"tool": "pay", "args": {"amount": 7}}
    desk.answered(**{asked["id"]: True})
    assert desk.did()["paid 7"] == 1
    assert str(last_reply(desk)) == "told told receipt 7"


def test_an_agent_that_is_a_tool_asks_a_person(desk: Desk) -> None:
    events = list(desk.client.runs.stream(desk.id, desk.agent, input="inner ask", stream_mode="custom"))
    assert not [one for one in events if one.event == "error"]
    for question, answer in (("How much?", "five"), ("And?", "no")):
        (one,) = desk.records()
        assert one["value"] == question
        desk.answered(**{one["id"]: answer})
    assert str(last_reply(desk)) == "told told five and no"


def test_after_a_handoff_the_next_run_is_the_other_agents(desk: Desk) -> None:
    assert reply(desk, input="over") == "taken over"
    assert reply(desk, input="tea") == "refunds heard tea"
    desk.tell("name", "returns")
    run = desk.ended(desk.begin(input="coffee"))
    assert run["error"]["error"] == "IncompatibleState", run["error"]
    assert "'refunds'" in run["error"]["message"]
    desk.untell("name")
    assert reply(desk, input="water") == "refunds heard water"


def test_what_a_tool_raises_is_the_runs_error(desk: Desk) -> None:
    run = desk.ended(desk.begin(input="fails"))
    assert "no order 8" in json.dumps(run["error"])
    assert reply(desk, input="tea") == "desk heard tea"


def test_a_context_that_cannot_be_stored_is_named(desk: Desk) -> None:
    run = desk.ended(desk.begin(input="spoil", context={"user": "ann"}))
    assert "lock" in json.dumps(run["error"]), run
    assert reply(desk, input="tea", context={}) == "desk heard tea"


def test_named_fields_of_the_events_are_told(desk: Desk) -> None:
    events = [
        one.data
        for one in desk.client.runs.stream(desk.id, desk.agent, input="over", stream_mode=["custom", "updates"])
        if one.event in ("custom", "updates")
    ]
    told = [(one["type"], one["agent"]) for one in events if isinstance(one, dict) and "type" in one]
    assert ("handoff_requested", "desk") in told
    assert ("agent_updated", "refunds") in told
    assert any("refunds" in one for one in events if isinstance(one, dict))
