"""The product page's examples do, inside a guest, what the page says; their code is cut out of the page."""

import json
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.flow.conftest import Project, called, client_of
from tests.support.page import lines_with, python_from

pytestmark = pytest.mark.flow

FIRST_LINES = {
    "first_example.py": "from agentvisor.langgraph import AgentVisorCheckpointer",
    "recovery_test.py": "def test_recovery():",
    "human_review.py": "from langgraph.types import interrupt",
    "metadata.py": "# Good - metadata is JSON-serializable",
}
REVIEW = {"configurable": {"graph": "page:human_review_graph"}}


@pytest.fixture
def project(shared_with_both: Project) -> Project:
    """The page's code beside the agent; the page leaves the messages open."""
    for file, first_line in FIRST_LINES.items():
        (shared_with_both.folder / file).write_text(python_from(first_line).replace("[...]", '["hello"]'))
    return shared_with_both


def test_the_page_is_cut_where_its_code_ends() -> None:
    example = python_from(FIRST_LINES["first_example.py"])
    assert example.splitlines()[-1] == 'result = graph.invoke({"messages": [...]})'
    assert python_from("def test_recovery():").splitlines()[-1].strip().startswith("assert result2")


def test_the_first_example_runs_as_written_without_a_config(project: Project) -> None:
    client = client_of(project.hosts[0])
    thread, result = called(client, "page:first_example")
    assert result == {"messages": ["hello", "answer to hello"], "step_count": 1}
    state = client.threads.get_state(thread)
    assert state["values"] == result
    assert [one["metadata"]["step"] for one in client.threads.get_history(thread, limit=9)] == [1, 0, -1]


def test_the_next_run_goes_on_from_the_threads_checkpoint(project: Project) -> None:
    client = client_of(project.hosts[0])
    thread, _ = called(client, "page:first_example")
    _, result = called(client, "page:first_example", thread)
    assert result["step_count"] == 2
    assert result["messages"] == ["hello", "answer to hello"] * 2


@pytest.mark.parametrize("where", ["a task", "asyncio.to_thread", "a thread", "a pool", "a task of a thread's loop"])
def test_the_first_example_runs_without_a_config_in(where: str, project: Project) -> None:
    client = client_of(project.hosts[0])
    thread, result = called(client, "page:first_example_somewhere", where=where)
    assert result["step_count"] == 1
    assert client.threads.get_state(thread)["values"] == result


def test_the_pages_recovery_test_passes_as_written(project: Project) -> None:
    client = client_of(project.hosts[0])
    thread, result = called(client, "page:recovery_test")
    assert result == "passed"
    # Once by the example above the test, twice by the test.
    assert client.threads.get_state(thread)["values"]["step_count"] == 3


def test_the_pages_interrupt_pauses_until_a_run_brings_the_answer(project: Project) -> None:
    client = client_of(project.hosts[0])
    thread = str(uuid4())
    given = {"pending_action": "delete the files"}
    client.runs.wait(thread, "graph", input=given, config=REVIEW, if_not_exists="create")
    assert client.threads.get(thread)["status"] == "interrupted"
    (asked,) = client.threads.get_state(thread)["interrupts"]
    assert asked["value"] == {
        "question": "Approve this action?",
        "action": "delete the files",
        "options": ["approve", "reject", "modify"],
    }
    values = client.runs.wait(thread, "graph", command={"resume": "approve"}, config=REVIEW)
    assert values == given
    assert client.threads.get(thread)["status"] == "idle"
    assert client.threads.get_state(thread)["next"] == []


def test_the_pages_good_metadata_is_stored_and_the_bad_one_refused(project: Project) -> None:
    _, result = called(client_of(project.hosts[0]), "page:metadata_examples")
    assert "metadata['handler']" in result["refused"]
    assert "process_node" in result["refused"] or "function" in result["refused"]
    (stored,) = result["stored"]
    assert stored["count"] == 42
    assert type(stored["count"]) is int
    assert stored["items"] == ["a", "b"]


def test_the_pages_curl_lines_show_history_and_state(project: Project) -> None:
    host = project.hosts[0]
    client = client_of(host)
    thread, _ = called(client, "page:first_example")
    shown: dict[str, Any] = {}
    for line in lines_with("curl http://localhost:8090/threads/"):
        place = line.removeprefix("curl ").removesuffix(" | jq").replace("{thread_id}", thread)
        shown[Path(place).name] = _curl(place.replace("http://localhost:8090", host.url))
    assert shown["history"][0]["values"] == shown["state"]["values"] == client.threads.get_state(thread)["values"]


def _curl(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)
