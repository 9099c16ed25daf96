"""Nothing is left in the machine's temporary folder after a session, whatever was killed in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
LEAVES = """
import os, signal, subprocess, sys, tempfile

def test_leaves(tmp_path):
    (tmp_path / "mine").touch()
    tempfile.mkdtemp(prefix="agentvisor-")
    killed = "import os, signal, tempfile; tempfile.mkdtemp(prefix='agentvisor-'); os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", killed]).returncode == -signal.SIGKILL
"""


@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.slow), ("-n", "2")], ids=["alone", "workers"])
def test_a_session_leaves_nothing(tmp_path: Path, workers: tuple[str, ...]) -> None:
    outside = tmp_path / "tmp"
    outside.mkdir()
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", *workers]
    environment = {**os.environ, "TMPDIR": str(outside), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [*command, str(tmp_path / "test_leaves.py")], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout + ended.stderr
    assert list(outside.iterdir()) == []
