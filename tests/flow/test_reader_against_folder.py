"""What was acknowledged is seen at once, by every reader on every host, however fast the writer's log is folded."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow

CHECKPOINTS = 50
EVERY_COMMIT_FOLDS = {"AGENTVISOR_TEMPORAL_FOLD_THRESHOLD": "1"}

Read = Callable[[HostProcess, str], list[dict[str, Any]]]
"""The thread's history as {"checkpoint_id", "step", "values", "pending"}, newest first."""


@pytest.fixture
def hosts(tmp_path: Path, temporal: str) -> Generator[list[HostProcess]]:
    """Two hosts of one task queue: a run lives on one of them, and both are read."""
    project = Project(tmp_path, temporal, "zygote", {"calls": "calls.py:call"})
    try:
        yield [project.host(EVERY_COMMIT_FOLDS), project.host(EVERY_COMMIT_FOLDS)]
    finally:
        for host in project.hosts:
            host.stop()


def by_http(host: HostProcess, thread: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{host.url}/threads/{thread}/history", params={"limit": 1000}, timeout=30)
    assert answer.status_code == 200, answer.text
    return [
        {"id": one["checkpoint"]["checkpoint_id"], "step": one["metadata"]["step"], "values": one["values"]["values"]}
        for one in answer.json()
    ]


def by_saver(host: HostProcess, thread: str) -> list[dict[str, Any]]:
    found = AgentVisorCheckpointer(endpoint=host.url).list({"configurable": {"thread_id": thread}})
    return [
        {"id": one.checkpoint["id"], "step": one.metadata["step"], "values": one.checkpoint["channel_values"]["values"]}
        for one in found
    ]


def test_every_acknowledged_checkpoint_is_in_the_history_at_once(hosts: list[HostProcess], tmp_path: Path) -> None:
    thread, notes = str(uuid4()), tmp_path / "acknowledged"
    notes.touch()
    given = {"call": "writer:write", "with": {"count": CHECKPOINTS, "noted_in": str(notes)}}
    client = client_of(hosts[0])
    run = client.runs.create(thread, "calls", input=given, if_not_exists="create")

    def watch(host: HostProcess, read: Read) -> int:
        """Compare until the last one is there; how often there was something new to see."""
        looks = last = 0
        while last < CHECKPOINTS:
            acknowledged = [line.split()[1] for line in notes.read_text().splitlines() if line.count("-") == 4]
            seen = read(host, thread)
            ids = [one["id"] for one in seen]
            assert ids == sorted(set(ids), reverse=True), "newest first, none twice"
            assert [one["step"] for one in seen] == list(range(len(seen), 0, -1)), "none is missing in between"
            assert set(acknowledged) <= set(ids)
            assert all(len(one["values"]) == one["step"] for one in seen), "each with its own values"
            looks += len(acknowledged) > last
            last = max(last, len(acknowledged))
        return looks

    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(watch, host, read) for host in hosts for read in (by_http, by_saver)]
        assert [one.result(timeout=90) > 0 for one in looks] == [True] * 4
    assert client.runs.join(thread, run["run_id"]) == CHECKPOINTS
    assert [one["step"] for one in by_http(hosts[1], thread)] == list(range(CHECKPOINTS, 0, -1))
