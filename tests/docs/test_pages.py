"""Every code block of every page does what the page says: nothing in our documentation is only written down."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, Block, blocks_of, pages
from tests.docs.reader import RULES, Reader, reading

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300), pytest.mark.system("bash", "curl", "jq", "make")]

RUN_ELSEWHERE = {
    "docs/crewai.md": "tests/_crewai/test_page.py",
    "docs/deployment.md": "tests/deploy/test_pages.py",
    "docs/external-storage.md": "tests/external/test_page.py",
    "docs/history-limits.md": "tests/flow/test_limit_pages.py",
    "docs/limits.md": "tests/flow/test_limit_pages.py",
    "docs/upgrading.md": "tests/deploy/test_pages.py",
}
"""Pages whose blocks need more than a shell (CrewAI, an object store, a thread near its limits), and who runs them."""

WITH_BLOCKS = [page for page in pages() if blocks_of(page) and str(page.relative_to(ROOT)) not in RUN_ELSEWHERE]


@pytest.fixture
def reader(tmp_path: Path) -> Generator[Reader]:
    with reading(tmp_path / "project") as reader:
        yield reader


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_works_from_its_first_block_to_its_last(page: Path, reader: Reader) -> None:
    for block in blocks_of(page):
        reader.do(block)


@pytest.mark.parametrize("language, name, text", [("", "", "make demo"), ("ruby", "", "1"), ("console", "", "$ ls")])
def test_a_block_that_no_rule_runs_fails(language: str, name: str, text: str, reader: Reader) -> None:
    with pytest.raises(AssertionError, match="no rule"):
        reader.do(Block("page.md", 1, language, name, text))


@pytest.mark.parametrize(
    "language, name, text",
    [
        ("python", "", "assert 1 == 2"),
        ("python", "agent.py", "def"),
        ("yaml", "agentvisor.yaml", "http: {prot: 1}"),
        ("json", "langgraph.json", '{"graphs": {}}'),
        ("bash", "", "false"),
        ("bash", "", "true; agentvisor no-such-command"),
        ("bash", "", "make no-such-target"),
        ("bash", "", "pip install 'agentvisor[everything]'"),
        ("text", "", "nothing has printed this"),
        ("text", "picture", "host/no_such_file.py"),
    ],
)
def test_a_block_that_is_not_true_fails(language: str, name: str, text: str, reader: Reader) -> None:
    with pytest.raises(Exception):  # noqa: B017 - each fails in its own way
        reader.do(Block("page.md", 1, language, name, text))


@pytest.mark.parametrize("page, test", RUN_ELSEWHERE.items())
def test_a_page_that_is_run_elsewhere_is_named_there(page: str, test: str) -> None:
    assert blocks_of(ROOT / page)
    text = (ROOT / test).read_text()
    assert page in text
    assert re.search(r"def test_every_block_is_of_a_kind_that_is_(run|tested)_here", text)


def test_every_rule_is_used() -> None:
    assert {block.language for page in WITH_BLOCKS for block in blocks_of(page)} == set(RULES)
