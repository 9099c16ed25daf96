"""The demonstration of the README: it kills what it says, and proves what it promises."""

import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / ".venv" / "bin" / "agentvisor"


@pytest.mark.flow
def test_the_demonstration_kills_everything_and_finishes() -> None:
    done = subprocess.run(
        [PROGRAM, "demo"], check=False, capture_output=True, text=True, timeout=110, env={"COLUMNS": "160"}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = re.sub(r"\s+", " ", done.stdout)
    assert said.count("kill -9 of") == 3
    assert "the agent was killed by signal 9" in said
    assert "the host stopped sending heartbeats" in said
    assert "Answer: approve" in said
    assert "The agent says: Deployed." in said
    assert "Every task finished once (10 tasks, 3 kills)" in said
    finished = re.findall(r"│ (?:scan|build|announce) (?:billing|search|mail) +│ (\d) +│ (\d) +│", done.stdout)
    assert len(finished) == 9
    assert all(count == "1" for _, count in finished)
    assert sum(int(begun) for begun, _ in finished) >= 11, "two tasks were cut off in the middle and begun again"
