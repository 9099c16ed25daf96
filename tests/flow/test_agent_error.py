"""What an agent does wrong is its run's error at once, and is never repeated; a new run goes on from there."""

import json

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, warm_by_default

pytestmark = pytest.mark.flow

ERRORS = {
    "raise": {"error": "LookupError", "message": "no customer 42"},
    "exit": {"error": "AgentError", "message": "the agent exited with code 3"},
}


@pytest.mark.parametrize("ends", ERRORS)
def test_an_agents_error_ends_the_run_at_the_first_attempt(victims: Project, ends: str) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    run = thread.ended(thread.graph("unrepaired", {"ends": ends}))
    assert run["status"] == "error"
    assert run["error"] == ERRORS[ends]
    assert [one["ending"] for one in run["attempts"]] == ["agent_error"]
    assert thread.did() == {"did first": 1, "began second": 1}
    assert thread.status() == "error"


@warm_by_default
@pytest.mark.parametrize("ends", ERRORS)
def test_a_new_run_goes_on_from_the_latest_checkpoint(victims: Project, ends: str) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    thread.ended(thread.graph("unrepaired", {"ends": ends}))
    assert thread.client.threads.get_state(thread.id)["next"] == ["second"]
    thread.tell("repaired")
    assert thread.ended(thread.graph("unrepaired", None))["status"] == "success"
    assert thread.did() == {"did first": 1, "began second": 2, "did second": 1}
    assert thread.values()["result"] == "repaired"
    assert thread.status() == "idle"


@warm_by_default
def test_a_plain_functions_error_ends_the_run_at_the_first_attempt(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    raised = thread.ended(thread.call("plain:fails", "this"))
    exited = thread.ended(thread.call("plain:exits"))
    assert raised["error"] == {"error": "ValueError", "message": "cannot use 'this'"}
    assert exited["error"] == ERRORS["exit"]
    assert len(raised["attempts"]) == len(exited["attempts"]) == 1
    assert thread.did() == {"did fails": 1, "did exits": 1}


def test_a_wait_answers_with_the_agents_error(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    config = {"configurable": {"graph": "unrepaired"}}
    answer = thread.client.runs.wait(thread.id, "graph", input={"ends": "raise"}, config=config, raise_error=False)
    assert answer == {"__error__": ERRORS["raise"]}


def test_the_log_has_the_traceback_of_the_users_file(warm_victims: Project) -> None:
    host = warm_victims.hosts[0]
    thread = VictimThread(warm_victims, host)
    run = thread.graph("unrepaired", {"ends": "raise"})
    thread.ended(run)
    lines = [json.loads(line) for line in host.log.read_text().splitlines() if thread.id in line]
    (raised,) = [line for line in lines if "traceback" in line]
    assert (raised["run"], raised["attempt"], raised["error"]) == (run, 1, "LookupError")
    assert 'raise LookupError("no customer 42")' in raised["traceback"]
    assert "unrepaired.py" in raised["traceback"]
    assert "agentvisor/" not in raised["traceback"]
