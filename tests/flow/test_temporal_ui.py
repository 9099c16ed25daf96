"""In Temporal's UI the workflow is found by the thread's id, and shows the current checkpoint in words."""

import base64
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from langgraph_sdk import get_sync_client
from temporalio.client import Client
from tests.flow.conftest import AGENTS
from tests.support.dev_process import DevProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

THREAD = "order-4711:refund"


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Generator[DevProcess]:
    """A thread that has run, and waits with a question."""
    folder: Path = tmp_path_factory.mktemp("ui")
    agents = {"tools": {"entrypoint": f"{AGENTS}/slow_tools.py:graph", "python_path": [str(AGENTS.parent)]}}
    agents["tools"]["env"] = {"EFFECTS": str(folder / "effects"), "GATE": str(folder)}  # type: ignore[assignment]
    (folder / "agentvisor.yaml").write_text(f"agents: {json.dumps(agents)}\n")
    dev = DevProcess(folder).start()
    try:
        client = get_sync_client(url=dev.url)
        client.threads.create(thread_id=THREAD, metadata={"team": "refunds", "tier": 1})
        client.runs.wait(THREAD, "tools", input={})
        yield dev
    finally:
        dev.end()


def ui(dev: DevProcess, place: str, body: object = None) -> Any:
    """The API that the UI's page reads, at the UI's own port."""
    url = f"http://127.0.0.1:{dev.ui_port}/api/v1/namespaces/default/{place}"
    with httpx.Client(timeout=20) as http:
        answer = http.get(url)
        if body is not None:
            # As the page does: with the token of the cookie that it was given.
            answer = http.post(url, json=body, headers={"x-csrf-token": http.cookies["_csrf"]})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_ui_answers_at_its_port(dev: DevProcess) -> None:
    page = httpx.get(f"http://127.0.0.1:{dev.ui_port}/namespaces/default/workflows", follow_redirects=True)
    assert page.status_code == 200
    assert "html" in page.headers["content-type"]


def test_the_workflow_is_found_by_the_threads_id(dev: DevProcess) -> None:
    described = ui(dev, f"workflows/{THREAD}")
    assert described["workflowExecutionInfo"]["status"] == "WORKFLOW_EXECUTION_STATUS_RUNNING"
    assert described["workflowExecutionInfo"]["execution"]["workflowId"] == THREAD
    query = urlencode({"query": f'WorkflowId = "{THREAD}"'})
    until(lambda: len(ui(dev, f"workflows?{query}").get("executions", [])) == 1)


def test_its_details_show_status_checkpoint_channels_and_runs(dev: DevProcess) -> None:
    asked = {"query": {"queryType": "__temporal_workflow_metadata"}}
    answer = ui(dev, f"workflows/{THREAD}/query/__temporal_workflow_metadata", asked)
    (payload,) = answer["queryResult"]["payloads"]
    details = json.loads(base64.b64decode(payload["data"]))["currentDetails"]
    client = get_sync_client(url=dev.url)
    state, (run,) = client.threads.get_state(THREAD), client.runs.list(THREAD)
    assert details.startswith("**interrupted**")
    assert state["checkpoint"]["checkpoint_id"] in details
    assert "done" in details
    assert "next: `ask`" in details
    assert f"`{run['run_id']}` **{run['status']}, waits for an answer** · agent `tools`" in details
    assert "question of node `ask`" in details


async def test_search_attributes_say_status_agent_and_metadata(dev: DevProcess) -> None:
    client = await Client.connect(f"127.0.0.1:{dev.temporal_port}")
    described = await client.get_workflow_handle(THREAD).describe()
    found = {pair.key.name: pair.value for pair in described.typed_search_attributes}
    assert found["AgentVisorStatus"] == "interrupted"
    assert found["AgentVisorAgent"] == "tools"
    assert {"team=refunds", "tier=1"} <= set(found["AgentVisorMetadata"])


def test_threads_are_searched_by_what_temporal_indexes(dev: DevProcess) -> None:
    client = get_sync_client(url=dev.url)
    until(lambda: [one["thread_id"] for one in client.threads.search(metadata={"team": "refunds"})] == [THREAD])
    until(lambda: [one["thread_id"] for one in client.threads.search(status="interrupted")] == [THREAD])
    assert client.threads.search(metadata={"tier": 2}) == []


def test_the_history_holds_all_events(dev: DevProcess) -> None:
    events = ui(dev, f"workflows/{THREAD}/history")["history"]["events"]
    kinds = {event["eventType"] for event in events}
    assert "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED" in kinds
    assert "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED" in kinds
