"""docs/crewai.md does what it says, block by block; the example too, as its comments say."""

import json
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.reader import RULES, Reader
from tests.support.dev_process import AGENTVISOR
from tests.support.host_process import HostProcess

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300), pytest.mark.system("bash", "curl", "jq", "make")]

PAGE = ROOT / "docs/crewai.md"
EXAMPLE = ROOT / "examples/crewai"


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {block.language for block in blocks_of(PAGE)} <= set(RULES)


@pytest.fixture
def reader(tmp_path: Path) -> Generator[Reader]:
    folder = tmp_path / "project"
    folder.mkdir()
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.close()
        shutil.rmtree(folder / ".agentvisor", ignore_errors=True)


def test_the_page_works_from_its_first_block_to_its_last(reader: Reader) -> None:
    for block in blocks_of(PAGE):
        reader.do(block)


@pytest.fixture
def example(tmp_path: Path, temporal: str) -> Generator[HostProcess]:
    folder = tmp_path / "crewai"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".agentvisor", "__pycache__", "ledger.txt"))
    host = HostProcess(folder, temporal, {"AGENTVISOR_TEMPORAL_TASK_QUEUE": f"examples-{folder}"}).start()
    yield host
    host.stop()


def test_the_example_does_what_it_says(example: HostProcess) -> None:
    lines = (EXAMPLE / "agentvisor.yaml").read_text().splitlines()
    commands = [line[2:] for line in lines if line.startswith("# agentvisor run ")]
    environment = {
        **os.environ,
        "PATH": f"{Path(AGENTVISOR).parent}:{os.environ['PATH']}",
        "AGENTVISOR_ENDPOINT": example.url,
    }
    asked, again, ended = (
        subprocess.run(
            ["bash", "-c", one], env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout
        for one in commands
    )
    assert "Your refund is on its way." in asked
    assert "Your refund of 12.50 is on its way." in again
    assert json.loads(ended[ended.rindex("\n{\n") :])["raw"] == "Your refund of 12.50 is on its way."
    assert (example.folder / "ledger.txt").read_text().splitlines() == ["looked up 7", "began to book 7", "booked 7"]
