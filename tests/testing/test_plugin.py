"""The plugin costs nothing where it is not used, and tells how to see a failure again."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from agentvisor.testing import plugin

pytestmark = pytest.mark.thorough

HEAVY = ("agentvisor.host", "agentvisor.guest", "grpc", "google.protobuf", "temporalio", "httpx", "psutil", "pydantic")


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "agentvisor.testing.plugin"}
"""Other plugins of this environment load what they like."""


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_a_pytest_that_does_not_use_it_loads_nothing_heavy_and_says_nothing_of_it(folder: Path) -> None:
    (folder / "test_other.py").write_text(
        f"import sys\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith({HEAVY!r})]\n"
    )
    ran = run_pytest(folder, **ALONE)
    assert ran.returncode == 0, ran.stdout
    assert "agentvisor" not in ran.stdout


def test_whoever_installs_agentvisor_has_the_plugin() -> None:
    (found,) = [one for one in entry_points(group="pytest11") if one.name == "agentvisor"]
    assert found.load() is plugin


DRAWS = """
def test_it(agentvisor_chance):
    faults = agentvisor_chance.faults(3, targets=("agent", "host"), stops=True)
    assert not faults, "DRAWN " + ", ".join(map(str, faults))
"""


def test_a_failure_names_the_faults_that_were_drawn_and_the_command_that_draws_them_again(folder: Path) -> None:
    (folder / "test_drawn.py").write_text(DRAWS)
    first = run_pytest(folder).stdout
    drawn = re.search(r"AssertionError: DRAWN (.*)", first)
    again = re.search(r"again: pytest (\S+) --agentvisor-seed (\d+)", first)
    assert drawn
    assert again
    assert re.search(rf"seed {again[2]}, drawn: kill|stop", first)
    assert f"DRAWN {drawn[1]}" in run_pytest(folder, again[1], "--agentvisor-seed", again[2]).stdout
    other = str(int(again[2]) + 1)
    assert f"DRAWN {drawn[1]}" not in run_pytest(folder, again[1], "--agentvisor-seed", other).stdout


def test_where_only_the_sdk_is_installed_it_says_what_to_install(folder: Path) -> None:
    (folder / "conftest.py").write_text("import sys\nsys.modules['psutil'] = None\n")
    (folder / "agentvisor.yaml").touch()
    (folder / "test_none.py").write_text("def test_it(agentvisor_host):\n    pass\n")
    assert "psutil is missing: pip install 'agentvisor[host]'" in run_pytest(folder).stdout


def test_without_a_project_it_says_where_it_looked(folder: Path) -> None:
    (folder / "test_none.py").write_text("def test_it(agentvisor_host):\n    pass\n")
    ran = run_pytest(folder)
    assert ran.returncode == 1
    assert f"there is no agentvisor.yaml or langgraph.json in {folder}" in ran.stdout
