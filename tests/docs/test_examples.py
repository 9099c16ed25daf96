"""Every example does what its README says, offline; what it is there to survive, it survives."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.reader import Reader
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300), pytest.mark.system("bash")]

EXAMPLES = ROOT / "examples"
FOLDERS = sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir() and folder.name != "crewai")
"""CrewAI's has an environment of its own (tests/_crewai/test_page.py)."""
KEYS = ("ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY")
"""With one of them an example would ask a real model."""
QUICK = {
    "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "2s",
    "AGENTVISOR_TEMPORAL_IDLE_HEARTBEAT": "500ms",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_INITIAL_BACKOFF": "50ms",
}

Start = Callable[[str], HostProcess]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def copy(name: str, folder: Path) -> Path:
    ignored = shutil.ignore_patterns(".agentvisor", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=ignored))


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_does_what_its_readme_says(name: str, tmp_path: Path) -> None:
    folder = copy(name, tmp_path)
    blocks = blocks_of(EXAMPLES / name / "README.md")
    assert any(block.language == "text" for block in blocks), "a README shows what its commands print"
    reader = Reader(folder)
    try:
        for block in blocks:
            reader.do(block)
    finally:
        reader.close()


def test_the_testing_example_is_what_the_page_shows() -> None:
    shown = {block.name: block.text for block in blocks_of(ROOT / "docs" / "testing.md") if block.name}
    assert shown == {file.name: file.read_text() for file in (EXAMPLES / "testing").glob("*.py")}


def test_with_a_key_the_desk_has_a_real_model(tmp_path: Path) -> None:
    folder = copy("langgraph", tmp_path)
    said = subprocess.run(
        [sys.executable, "-c", "import desk; print(type(desk.model()).__name__)"],
        cwd=folder,
        env={**os.environ, "ANTHROPIC_API_KEY": "made up"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "ChatAnthropic"


@pytest.fixture
def start(tmp_path: Path, temporal: str) -> Generator[Start]:
    """Starts an example in a copy of its folder, which is made once."""
    hosts: list[HostProcess] = []
    queue = f"examples-{uuid4()}"

    def of(name: str) -> HostProcess:
        folder = tmp_path / name if (tmp_path / name).exists() else copy(name, tmp_path)
        hosts.append(HostProcess(folder, temporal, QUICK | {"AGENTVISOR_TEMPORAL_TASK_QUEUE": queue}))
        return hosts[-1].start()

    yield of
    for host in hosts:
        host.stop()


def test_the_langgraph_example_repeats_no_finished_check_when_it_is_killed(start: Start) -> None:
    host = start("langgraph")
    client = get_sync_client(url=host.url)
    ledger = host.folder / "ledger.txt"
    created = client.runs.create("order-8", "refunds", input={"order": "8", "amount": 3}, if_not_exists="create")
    until(lambda: ledger.exists() and "payment of 8 checked" in ledger.read_text())
    until(lambda: sum(one.get("result") is not None for one in client.threads.get_state("order-8")["tasks"]) == 2)
    host.kill()
    host = start("langgraph")
    client = get_sync_client(url=host.url)
    client.runs.join("order-8", created["run_id"])
    client.runs.wait("order-8", "refunds", command={"resume": "yes"})
    lines = [line for line in ledger.read_text().splitlines() if "8" in line]
    assert sorted(set(lines)) == ["3.00 paid for 8"] + [
        f"{what} of 8 checked" for what in ("delivery", "history", "payment")
    ]
    # The slow check was under way when everything was killed: it alone may be there twice.
    assert [lines.count(line) for line in sorted(set(lines)) if "history" not in line] == [1, 1, 1]
