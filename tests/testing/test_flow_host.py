"""A test says in a line what a client says in many: runs, answers, cancels, deaths; for each way to name a project."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting_sync import until

from agentvisor.testing.host import Host
from agentvisor.testing.stage import Project, Stage

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

DESK = Path(__file__).parent / "agents" / "desk.py"


@pytest.fixture(scope="session")
def agentvisor_project() -> dict[str, object]:
    return {
        "asks": {"entrypoint": f"{DESK}:asks", "framework": "langgraph"},
        **{name: {"entrypoint": f"{DESK}:{name}", "framework": "function"} for name in ("here", "hangs", "fails")},
    }


def test_a_question_is_answered(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    assert thread.run("asks", {}).status == "success"
    assert (thread.status, [one["value"] for one in thread.questions]) == ("interrupted", ["Go on?"])
    assert thread.resume("asks", "yes").status == "success"
    assert (thread.status, thread.values) == ("idle", {"answer": "yes"})
    assert thread.history()[0]["values"] == {"answer": "yes"}
    assert [run.status for run in thread.runs()] == ["success", "success"]


def test_output_error_and_cancel_are_told(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread("order-7")
    assert thread.run("here", 1).output["given"] == 1
    failed = thread.run("fails", 42)
    assert (failed.status, failed.endings, failed.error) == (
        "error",
        ["agent_error"],
        {"error": "LookupError", "message": "no customer 42"},
    )
    assert thread.start("hangs").cancel().status == "interrupted"
    assert agentvisor_host.client.threads.get("order-7")["status"] == "idle"
    with pytest.raises(AssertionError, match=r"422 .*no agent 'nobody'"):
        thread.run("nobody")


def test_a_run_that_does_not_end_is_told_with_what_the_host_says(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    run = thread.start("hangs")
    until(lambda: "agent_started" in agentvisor_host.log_of(thread.id))
    with pytest.raises(AssertionError, match=r"(?s)has not ended in 0 s; thread .*agent_started"):
        run.wait(0)
    run.cancel()


def test_a_host_that_was_killed_is_there_for_who_asks_at_the_same_address(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    pid, url = agentvisor_host.pid, agentvisor_host.url
    agentvisor_host.kill()
    assert not agentvisor_host.is_alive
    assert thread.run("here", 2).output["given"] == 2
    assert agentvisor_host.pid != pid
    assert agentvisor_host.url == url


def test_temporal_comes_back_by_itself(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    agentvisor_host.temporal.kill()
    assert thread.status == "idle"
    agentvisor_host.temporal.freeze()
    agentvisor_host.temporal.thaw()
    assert thread.run("here", 3).output["given"] == 3


@pytest.mark.parametrize(
    "kind", [pytest.param("agentvisor.yaml", marks=pytest.mark.slow), "langgraph.json", "the folder"]
)
def test_a_project_is_a_folder_or_its_file(tmp_path: Path, agentvisor_stage: Stage, kind: str) -> None:
    shutil.copy(DESK, tmp_path / "desk.py")
    name = "agentvisor.yaml" if kind == "the folder" else kind
    projects: dict[str, Any] = {
        "agentvisor.yaml": {"agents": {"desk": "./desk.py:asks"}},
        "langgraph.json": {"graphs": {"desk": "./desk.py:asks"}, "dependencies": ["."]},
    }
    (tmp_path / name).write_text(json.dumps(projects[name]))
    project: Project = tmp_path if kind == "the folder" else name
    host = agentvisor_stage.host(project, {}, tmp_path)
    try:
        thread = host.thread()
        assert thread.run("desk", {}).status == "success"
        assert len(thread.questions) == 1
        # Nothing is left in the user's folder.
        assert {one.name for one in tmp_path.iterdir()} <= {name, "desk.py", "__pycache__"}
    finally:
        host.stop()


def test_what_a_test_leaves_running_or_frozen_does_not_trouble_the_next(agentvisor_host: Host) -> None:
    thread = agentvisor_host.thread()
    run = thread.start("hangs")
    until(lambda: "agent_started" in agentvisor_host.log_of(thread.id))
    agentvisor_host.freeze()
    agentvisor_host.leave()
    assert run.wait().status == "interrupted"
    assert agentvisor_host.threads == []
