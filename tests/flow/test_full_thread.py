"""A thread that an agent has filled: it still takes runs and clients' calls that make it smaller, and is compacted."""

from collections.abc import Generator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph.checkpoint.base.id import uuid6
from tests.flow.conftest import Project
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[HostProcess]:
    names = {"grow": "growing.py:graph", "updates": "growing.py:updates"}
    project = Project(tmp_path_factory.mktemp("full"), temporal, "zygote", names)
    settings = {
        "AGENTVISOR_STORAGE_MAX_STATE": "60000",
        "AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "100",
        "AGENTVISOR_TEMPORAL_FOLD_THRESHOLD": "2000",
    }
    host = project.host(settings)
    try:
        yield host
    finally:
        host.stop()


def wait(host: HostProcess, thread: str, agent: str, given: dict[str, Any]) -> httpx.Response:
    body = {"assistant_id": agent, "input": given, "if_not_exists": "create", "config": {"recursion_limit": 5_000}}
    return httpx.post(f"{host.url}/threads/{thread}/runs/wait", json=body, timeout=120)


def storage(host: HostProcess, thread: str) -> dict[str, Any]:
    return httpx.get(f"{host.url}/threads/{thread}/storage").json()


def filled(host: HostProcess, agent: str = "grow", size: int = 400) -> str:
    thread = str(uuid4())
    assert "StateTooLarge" in wait(host, thread, agent, {"size": size}).text
    assert storage(host, thread)["used"] < 1
    return thread


def items(host: HostProcess, thread: str) -> int:
    return len(httpx.get(f"{host.url}/threads/{thread}/state").json()["values"]["items"])


def test_a_run_makes_a_full_thread_smaller_however_often_others_were_refused(host: HostProcess) -> None:
    thread = filled(host)
    for _ in range(5):
        assert "StateTooLarge" in wait(host, thread, "grow", {"size": 400}).text
        assert storage(host, thread)["used"] < 1
    trimmed = wait(host, thread, "grow", {"trim": True})
    assert trimmed.status_code == 200, trimmed.text
    assert len(trimmed.json()["items"]) == 1
    assert storage(host, thread)["used"] < 0.2
    assert storage(host, thread)["compactions"] > 0


def test_a_client_makes_a_full_thread_smaller(host: HostProcess) -> None:
    thread = filled(host)
    saver = AgentVisorCheckpointer(endpoint=host.url)
    found = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert found is not None
    version = f"{9:032}.0"
    smaller: Any = {**found.checkpoint, "id": str(uuid6()), "channel_values": {"items": []}}
    smaller["channel_versions"] = {**found.checkpoint["channel_versions"], "items": version}
    saver.put(found.config, smaller, {}, {"items": version})
    assert items(host, thread) == 0
    until(lambda: storage(host, thread)["used"] < 0.2)  # the session has ended


def test_a_full_thread_is_pruned(host: HostProcess) -> None:
    thread = filled(host)
    pruned = httpx.post(f"{host.url}/threads/prune", json={"thread_ids": [thread], "strategy": "keep_latest"})
    assert pruned.status_code == 200, pruned.text
    until(lambda: storage(host, thread)["checkpoints"] == 1)


def test_updates_of_a_delta_channel_that_fill_a_thread_are_named(host: HostProcess) -> None:
    thread = str(uuid4())
    refused = wait(host, thread, "updates", {"size": 400}).text
    for part in ("StateTooLarge", "'items'", "snapshot_frequency"):
        assert part in refused
    assert storage(host, thread)["used"] < 1
