"""State that lives in writes (DeltaChannel) and answers survive pruning, compaction and kills, in real guests."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient
from temporalio.client import Client
from tests.flow.conftest import Project, called, client_of
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

LOGGING = {"configurable": {"graph": "deltas:logging"}, "recursion_limit": 10_000}
ASKING = {"configurable": {"graph": "deltas:asking"}}


@pytest.fixture
def small(tmp_path: Path, temporal: str) -> Generator[Project]:
    """A host that keeps two checkpoints of each namespace, and compacts as often as it may."""
    project = Project(tmp_path, temporal, "zygote", {"graph": "graphs.py:make", "calls": "calls.py:call"})
    project.host(
        {"AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY": "2", "AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "100",
         "AGENTVISOR_TEMPORAL_FOLD_THRESHOLD": "2KiB"}
    )  # fmt: skip
    yield project
    for host in project.hosts:
        host.stop()


def expected(steps: int, first: int = 1) -> list[str]:
    log, subs = list[str](), (first - 1) // 10
    for n in range(first, first + steps):
        log.append(f"l{n}")
        if n % 10 == 0:
            subs += 1
            log.append(f"s{2 * subs}")
    return log


def run(client: SyncLangGraphClient, thread: str, config: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Run the graph; its state afterwards, as a fresh process reads it."""
    client.runs.wait(thread, "graph", config=config, if_not_exists="create", **given)
    return read(client, thread, config["configurable"]["graph"].partition(":")[2])


def read(client: SyncLangGraphClient, thread: str, graph: str) -> dict[str, Any]:
    _, state = called(client, "deltas:read", thread, name=graph)
    return state


def storage(project: Project, thread: str) -> dict[str, Any]:
    return httpx.get(f"{project.hosts[0].url}/threads/{thread}/storage", timeout=30).json()


def compact(project: Project, thread: str) -> None:
    """Ask the thread to continue as new, and wait until it has."""

    async def ask() -> None:
        client = await Client.connect(project.temporal)
        await client.get_workflow_handle(thread).execute_update("compact", b"", result_type=bytes)

    before = storage(project, thread)["compactions"]
    asyncio.run(ask())
    until(lambda: storage(project, thread)["compactions"] > before)


def test_a_log_in_writes_is_whole_after_prunes_and_compactions_under_a_live_guest(small: Project) -> None:
    client, thread = client_of(small.hosts[0]), str(uuid4())
    final = run(client, thread, LOGGING, input={"n": 0, "most": 160, "log": [], "rare": []})
    assert final["log"] == expected(160)
    assert final["rare"] == [f"r{n}" for n in range(20, 161, 20)]
    held = storage(small, thread)
    assert held["compactions"] >= 1
    assert held["checkpoints"] <= 2 * held["namespaces"]
    # A fresh process reads what it goes on from.
    compact(small, thread)
    final = run(client, thread, LOGGING, input={"n": 160, "most": 180})
    assert final["log"] == [*expected(160), *expected(20, 161)]
    assert final["rare"] == [f"r{n}" for n in range(20, 181, 20)]


def test_a_log_in_writes_survives_kills_of_the_host_between_compactions(small: Project) -> None:
    client, thread = client_of(small.hosts[0]), str(uuid4())
    client.threads.create(thread_id=thread)
    running = client.runs.create(
        thread, "graph", config=LOGGING, input={"n": 0, "most": 250, "log": [], "rare": []}
    )  # fmt: skip
    until(lambda: storage(small, thread)["compactions"] >= 1, seconds=60)
    small.hosts[0].kill()
    host = small.host({"AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY": "2", "AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "100"})
    small.hosts[:] = [host]
    client = client_of(host)
    client.runs.join(thread, running["run_id"])
    assert read(client, thread, "logging")["log"] == expected(250)


def test_one_of_two_questions_answered_stays_answered_through_compactions(small: Project) -> None:
    client, thread = client_of(small.hosts[0]), str(uuid4())
    client.runs.wait(thread, "graph", config=ASKING, input={"log": []}, if_not_exists="create")
    compact(small, thread)
    state = client.threads.get_state(thread)
    asked = {one["value"]: one["id"] for task in state["tasks"] for one in task["interrupts"]}
    assert set(asked) == {"left", "right"}
    client.runs.wait(thread, "graph", config=ASKING, command={"resume": {asked["right"]: "R"}})
    compact(small, thread)
    # A run that waits for an answer is not issued again, and the one answer is not given to the other question.
    assert [one["status"] for one in client.runs.list(thread)] == ["success", "success"]
    assert client.threads.get(thread)["status"] == "interrupted"
    compact(small, thread)
    client.runs.wait(thread, "graph", config=ASKING, command={"resume": {asked["left"]: "L"}})
    assert client.threads.get(thread)["status"] == "idle"
    assert sorted(read(client, thread, "asking")["log"]) == ["before", "left=L", "right=R"]
