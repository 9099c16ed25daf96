"""Every example runs in a host of its own, as its comments say, and survives what it is there to survive."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from tests.docs.blocks import ROOT, blocks_of
from tests.support.dev_process import AGENTVISOR
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {
    "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "2s",
    "AGENTVISOR_TEMPORAL_IDLE_HEARTBEAT": "500ms",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_INITIAL_BACKOFF": "50ms",
}

Start = Callable[[str], HostProcess]


@pytest.fixture
def start(tmp_path: Path, temporal: str) -> Generator[Start]:
    """Starts an example in a copy of its folder."""
    hosts: list[HostProcess] = []
    queue = f"examples-{uuid4()}"

    def of(name: str) -> HostProcess:
        folder = tmp_path / name
        if not folder.exists():
            shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".agentvisor", "__pycache__"))
        hosts.append(HostProcess(folder, temporal, QUICK | {"AGENTVISOR_TEMPORAL_TASK_QUEUE": queue}))
        return hosts[-1].start()

    yield of
    for host in hosts:
        host.stop()


def commands_in(example: str) -> list[list[str]]:
    """The `agentvisor run` lines in the comments of its configuration."""
    lines = (EXAMPLES / example / "agentvisor.yaml").read_text().splitlines()
    return [["bash", "-c", line[2:]] for line in lines if line.startswith("# agentvisor run ")]


def run(command: list[str], host: HostProcess) -> subprocess.CompletedProcess[str]:
    path = f"{Path(AGENTVISOR).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "AGENTVISOR_ENDPOINT": host.url}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)


def test_every_example_is_tried_here_or_in_crewais_environment() -> None:
    assert {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()} == {
        "langgraph", "function", "testing", "crewai",
    }  # fmt: skip


def test_the_testing_example_is_what_the_page_shows_and_its_test_runs() -> None:
    shown = {block.name: block.text for block in blocks_of(ROOT / "docs" / "testing.md") if block.name}
    assert shown == {file.name: file.read_text() for file in (EXAMPLES / "testing").glob("*.py")}


def test_the_langgraph_example_does_what_it_says_and_repeats_no_finished_check_when_it_is_killed(start: Start) -> None:
    host = start("langgraph")
    asked, answered = [run(command, host) for command in commands_in("langgraph")]
    assert "waits for an answer" in asked.stdout
    assert "Refund 12.50 for order 7?" in asked.stdout
    assert '"receipt": "R-7"' in answered.stdout

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


def test_the_function_example_streams_and_returns(start: Start) -> None:
    host = start("function")
    (command,) = commands_in("function")
    said = run(command, host).stdout
    assert '"done": 1' in said
    assert json.loads(said[said.index("\n{") :])["words"] == {"to": 3, "be": 2, "or": 1, "not": 1, "do": 1}
