"""The key of a model is nowhere in what a crew or flow leaves: not on the thread, in Temporal, nor in a file."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests._crewai.conftest import CANARY, Desk
from tests._crewai.thread import DeskThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

READ = """
import json, sys
from agentvisor import checkpoint
saves = checkpoint.list(thread_id=sys.argv[1])
print(json.dumps([checkpoint.load(one.id, thread_id=sys.argv[1]) for one in saves]))
"""


def saves_of(thread: DeskThread) -> str:
    """All that is kept of the thread, as text."""
    environment = {**os.environ, "AGENTVISOR_ENDPOINT": thread.host.url}
    command = [sys.executable, "-c", READ, thread.id]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def test_no_key_is_left_anywhere(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    crew, flow = DeskThread(desk), DeskThread(desk)
    crew.run_of("keyed")
    assert [one["value"]["draft"] for one in crew.questions()] == ["first draft"]
    flow.run_of("Reviewed", {"topic": "tea"})
    kept = saves_of(crew) + saves_of(flow)
    assert "Find the order 7" in kept  # what is looked through is what was kept
    assert "draft 1" in kept
    shown = json.dumps([one.client.threads.get_state(one.id) for one in (crew, flow)])
    assert "CANARY" not in kept + shown
    left = {path: path.read_bytes() for path in tmp_path_factory.getbasetemp().rglob("*") if path.is_file()}
    assert any(b"crewai" in data for path, data in left.items() if "temporal" in str(path))
    with_key = [path for path, data in left.items() if b"CANARY-of" in data and path.name != "agentvisor.yaml"]
    assert with_key == []
    assert "sk-" in desk.hosts[-1].log.read_text()  # the crew was made as it is written, key and all
    # CrewAI's own checkpoints, which were asked for.
    assert [path for path in left if "checkpoint" in path.name or CANARY in path.name] == []
    assert not Path(".checkpoints").exists()


def test_no_lock_is_left_in_the_temporary_folder(desk: Desk) -> None:
    before = locks()
    DeskThread(desk).run_of("keyed")
    DeskThread(desk).run_of("Reviewed", {"topic": "tea"})
    assert locks() == before


def locks() -> set[Path]:
    """CrewAI's own place for them."""
    return set(Path(tempfile.gettempdir()).glob("crewai:*.lock"))
