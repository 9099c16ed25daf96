"""docs/crewai.md does what it says, block by block; the example too, as its README says."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.reader import RULES, Reader, reading

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300), pytest.mark.system("bash", "curl", "jq", "make")]

PAGE = ROOT / "docs/crewai.md"
EXAMPLE = ROOT / "examples/crewai"


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {block.language for block in blocks_of(PAGE)} <= set(RULES)


@pytest.fixture
def reader(tmp_path: Path) -> Generator[Reader]:
    with reading(tmp_path / "project") as reader:
        yield reader


def test_the_page_works_from_its_first_block_to_its_last(reader: Reader) -> None:
    for block in blocks_of(PAGE):
        reader.do(block)


def test_the_example_does_what_its_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ignored = shutil.ignore_patterns(".agentvisor", "__pycache__", "ledger.txt")
    reader = Reader(Path(shutil.copytree(EXAMPLE, tmp_path / "crewai", ignore=ignored)))
    blocks = blocks_of(EXAMPLE / "README.md")
    assert any(block.language == "text" for block in blocks)
    try:
        for block in blocks:
            reader.do(block)
    finally:
        reader.close()
