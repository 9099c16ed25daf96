"""What fails beside other tests is told from what fails: scripts/run_alone.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

BARE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Without plug-ins, a pytest starts in a third of the time."""
SCRIPT = Path(__file__).parents[1] / "scripts" / "run_alone.py"

COUNTED = """
from pathlib import Path

def test_counted():
    count = Path(__file__).with_name("count")
    turn = len(count.read_text()) if count.exists() else 0
    count.write_text("x" * (turn + 1))
    assert turn not in {fails}
"""


def first_run(folder: Path, text: str) -> int:
    """The exit code of all tests of a project that has this one file of them."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(folder), "test_it.py"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, env=BARE).returncode


def alone(folder: Path, code: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(code)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, env=BARE)


@pytest.mark.parametrize("fails", [[0], [0, 1], [0, 3]], ids=str)
def test_what_failed_is_green_only_where_it_passes_three_times_alone(tmp_path: Path, fails: list[int]) -> None:
    red = len(fails) > 1
    code = first_run(tmp_path, COUNTED.format(fails=fails))
    assert code == 1
    done = alone(tmp_path, code)
    assert done.returncode == (1 if red else 0), done.stdout + done.stderr
    assert ("DISTURBED: test_it.py::test_counted" in done.stdout) is not red


def test_many_failures_or_a_pytest_that_did_not_end_are_red_at_once(tmp_path: Path) -> None:
    many = "\n".join(f"def test_{number}(): assert False" for number in range(6))
    assert first_run(tmp_path, many) == 1
    assert "Alone" not in alone(tmp_path, 1).stdout
    assert alone(tmp_path, 1).returncode == 1
    assert first_run(tmp_path, COUNTED.format(fails=[0])) == 1
    assert alone(tmp_path, 134).returncode == 134
