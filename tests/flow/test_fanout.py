"""S8: a wide fan-out of subgraphs may spike, is bounded by its width times the root's depth, and is reclaimed."""

from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.flow.conftest import Project, called, client_of

pytestmark = pytest.mark.flow


@pytest.fixture
def bounded(tmp_path: Path, temporal: str) -> Generator[Project]:
    """A host that keeps three checkpoints of each namespace."""
    yield from _project(tmp_path, temporal, history=3)


@pytest.fixture
def unbounded(tmp_path: Path, temporal: str) -> Generator[Project]:
    yield from _project(tmp_path, temporal, history=0)


def _project(folder: Path, temporal: str, *, history: int) -> Generator[Project]:
    project = Project(folder, temporal, "zygote", {"calls": "calls.py:call"})
    project.host({"AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY": str(history)})
    yield project
    for host in project.hosts:
        host.stop()


def stored(project: Project, thread: str) -> dict[str, int]:
    """What the thread holds, as its host says."""
    return httpx.get(f"{project.hosts[0].url}/threads/{thread}/storage", timeout=30).json()


def test_a_fan_out_is_bounded_and_what_was_stale_is_reclaimed(bounded: Project) -> None:
    client = client_of(bounded.hosts[0])
    thread, output = called(client, "wide:fan_out", width=40, rounds=6)
    assert output["total"] == 6 * sum(2 * number for number in range(40))
    held = stored(bounded, thread)
    # Three root checkpoints are kept; at most two of them had a fan-out under them.
    assert held["namespaces"] <= 2 + 40 * 2
    assert held["checkpoints"] <= (2 + 40 * 2) * 3
    _, _ = called(client, "wide:fan_out", thread, width=1, rounds=3)
    assert stored(bounded, thread)["namespaces"] <= 2 + 2


def test_nested_subgraphs_are_reclaimed_with_the_root_and_one_that_keeps_its_state_stays(bounded: Project) -> None:
    client = client_of(bounded.hosts[0])
    thread, _ = called(client, "wide:fan_out", width=5, rounds=8, nested=True)
    held = stored(bounded, thread)
    assert held["namespaces"] <= 2 + 2 * 5 * 2
    history = client.threads.get_history(thread, limit=50)
    assert history
    asked = {"limit": 10, "checkpoint": {"checkpoint_ns": "count"}}
    count = httpx.post(f"{bounded.hosts[0].url}/threads/{thread}/history", json=asked, timeout=30).json()
    assert len(count) == 3
    assert count[0]["values"]["calls"] == 8


def test_without_a_limit_everything_is_kept(unbounded: Project) -> None:
    thread, _ = called(client_of(unbounded.hosts[0]), "wide:fan_out", width=10, rounds=3)
    held = stored(unbounded, thread)
    assert held["namespaces"] == 2 + 10 * 3
    assert len(client_of(unbounded.hosts[0]).threads.get_history(thread, limit=100)) >= 3 * 3


@pytest.mark.slow
def test_a_thousand_branches_each_a_subgraph(bounded: Project) -> None:
    client = client_of(bounded.hosts[0])
    thread, output = called(client, "wide:fan_out", str(uuid4()), width=1000, rounds=2)
    assert output["total"] == 2 * sum(2 * number for number in range(1000))
    held = stored(bounded, thread)
    print(f"{held}, {output['seconds'] / 2 / 1000 * 1000:.2f} ms a branch")
    assert held["namespaces"] <= 2 + 1000 * 2
    began = output["seconds"]
    _, output = called(client, "wide:fan_out", thread, width=1, rounds=4)
    print(f"then {output['seconds']:.2f} s for four steps (before: {began:.2f} s)")
    assert stored(bounded, thread)["namespaces"] <= 4
