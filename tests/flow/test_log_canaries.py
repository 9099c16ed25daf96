"""Neither secrets nor contents are in what a host writes, whatever its callers and agents do with them."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.flow.conftest import Project
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until
from tests.support.webhooks import receiving

pytestmark = pytest.mark.flow

KEY = "canary-operator-key-0123456789abcdef"
AGENTS_KEY = "canary-agents-key-0123456789"
SECRETS = {
    "AGENTVISOR_HTTP_OPERATOR_KEY": KEY,
    "AGENTVISOR_HTTP_WEBHOOK_SECRET": "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5",
    "AGENTVISOR_HTTP_WEBHOOK_ALLOW_PRIVATE": "true",
}
AGENTS = {"canaries": "canaries.py:graph", "talks": "plain.py:talks", "broken": "broken.py:agent"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    project = Project(tmp_path_factory.mktemp("canaries"), temporal, "zygote", AGENTS)
    yield project
    for host in project.hosts:
        host.stop()


def use(host: HostProcess, webhook: str) -> list[str]:
    """Do with canaries whatever a caller can do; the runs that were made."""
    runs = list[str]()
    with httpx.Client(base_url=host.url, headers={"x-api-key": KEY}, timeout=30) as client:
        for how in ("raises", "asks", "unstorable"):
            thread = f"{how}-{uuid4().hex}"
            asked: dict[str, Any] = {
                "assistant_id": "canaries",
                "if_not_exists": "create",
                "input": {"given": "canary-input", "how": how},
                "metadata": {"note": "canary-metadata"},
                "config": {"configurable": {"who": "canary-config"}, "tags": ["canary-tag"]},
                "context": {"who": "canary-context"},
                "webhook": f"{webhook}/canary-path?token=canary-token",
            }
            run = client.post(f"/threads/{thread}/runs", json=asked).raise_for_status().json()["run_id"]
            client.get(f"/threads/{thread}/runs/{run}/join").raise_for_status()
            client.get(f"/threads/{thread}/state?canary=query").raise_for_status()
            runs.append(run)
            # What is refused: an answer of another type, a body that is none, a key that does not count.
            client.post(f"/threads/{thread}/runs", json={**asked, "command": {"resume": "canary-answer"}})
            client.post(f"/threads/{thread}/state", json={"values": {"canary-key": "canary"}, "as_node": "canary-node"})
            client.post(f"/threads/{thread}/runs", content=b'{"canary-body": ')
        client.post("/threads/search", json={"metadata": {"canary'": "canary\\"}})
        client.put(
            "/store/items", json={"namespace": ["canary-ns"], "key": "canary-key", "value": {"a": "canary-item"}}
        )
        client.post("/runs/wait", json={"assistant_id": "broken", "input": {"given": "canary-input"}})
        client.post("/runs/crons", json={"assistant_id": "canaries", "schedule": "canary", "input": "canary-cron"})
        httpx.get(f"{host.url}/threads/search", headers={"authorization": "Bearer canary-wrong-key"})
    return runs


def test_no_secret_and_no_contents_are_written(project: Project) -> None:
    with receiving() as receiver:
        receiver.answers[:] = [503] * 20
        host = project.host(SECRETS | {"AGENTVISOR_LOG_LEVEL": "debug"}, OPENAI_API_KEY=AGENTS_KEY)
        runs = use(host, receiver.url(""))
        until(lambda: host.log.read_text().count("webhook_tried") >= len(runs))
        host.stop()
    written = host.log.read_text()
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line for line in written.splitlines() if "canary" in line] == []
    raised = [line for line in lines if line["event"] == "agent_raised" and line.get("run") == runs[0]]
    assert [one["error"] for one in raised] == ["ValueError"]
    assert "canaries.py" in raised[0]["traceback"]
    assert (raised[0]["attempt"], raised[0]["thread"].split("-")[0]) == (1, "raises")
    requests = [line for line in lines if line["event"] == "request"]
    assert {"/threads/{thread_id}/runs", "/threads/search"} <= {one["route"] for one in requests}
    assert {one["thread"] for one in requests if one.get("run") == runs[0]} == {raised[0]["thread"]}


@pytest.mark.slow
def test_texts_of_errors_are_written_where_that_is_asked_for_and_secrets_are_not(project: Project) -> None:
    asked = {"AGENTVISOR_LOG_CONTENTS": "true", "AGENTVISOR_LOG_REQUESTS": "true"}
    host = project.host(SECRETS | asked, OPENAI_API_KEY=AGENTS_KEY)
    with receiving() as receiver:
        use(host, receiver.url(""))
    host.stop()
    written = host.log.read_text()
    assert "ValueError: canary-error canary-input" in written
    assert '"event": "request"' in written
    assert KEY not in written
    assert AGENTS_KEY not in written
    assert "canary-token" not in written
    assert "canary-wrong-key" not in written
