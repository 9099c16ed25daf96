"""The reference has all that there is, the promised pages exist, and figures are those that were measured."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.generate_sdk_page import MODULES, THROUGH_THE_PACKAGE
from tests.docs.blocks import ROOT
from tests.docs.test_site import CONFIG, places

DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "agentvisor"

PROMISED = {
    "AgentVisorCheckpointer reference": "checkpointer.md",
    "Checkpoint Sizing and Limits": "limits.md",
    "History Limits": "history-limits.md",
    "External Checkpoint Storage": "external-storage.md",
    "configuration reference": "configuration.md",
    "Thread State API": "thread-state.md",
    "ADK guide": "adk.md",
    "Strands guide": "strands.md",
    "Copy Thread": "copy-thread.md",
}
"""The pages that the product page links to, by the words of its links (S32)."""
SECTIONS = {
    "strands.md": ["Multi-Agent Checkpointing", "If you need cross-turn conversation memory"],
}
"""Sections that it links to."""


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)


def titles(nav: list[dict[str, object]]) -> dict[str, str]:
    """Of the nav, by page."""
    found: dict[str, str] = {}
    for entry in nav:
        for title, place in entry.items():
            found |= titles(place) if isinstance(place, list) else {str(place): title}
    return found


@pytest.mark.parametrize("words, page", PROMISED.items())
def test_a_page_that_the_product_page_links_to_is_found_by_its_name(words: str, page: str) -> None:
    assert words.lower() in (ROOT / "tests/docs/seed-checkpointing.txt").read_text().lower()
    name = words.removesuffix(" reference").removesuffix(" guide").lower()
    assert page in places(CONFIG["nav"])
    assert name in f"{titles(CONFIG['nav'])[page]} | {headings(page)[0]}".lower()


@pytest.mark.parametrize("page, sections", SECTIONS.items())
def test_a_section_that_the_product_page_links_to_is_there(page: str, sections: list[str]) -> None:
    seed = (ROOT / "tests/docs/seed-checkpointing.txt").read_text()
    there = [heading.lower() for heading in headings(page)]
    for section in sections:
        assert section in seed
        assert any(section.lower() in heading for heading in there), section


EXAMPLES = sorted(folder.name for folder in (ROOT / "examples").iterdir() if folder.is_dir())


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_guide_links_to_its_example(example: str) -> None:
    assert f"](../examples/{example})" in (DOCS / f"{example}.md").read_text()


def test_every_module_that_users_import_is_on_the_page_of_the_sdk() -> None:
    files = {f"agentvisor.{file.stem}" for file in SOURCE.glob("*.py") if file.stem not in THROUGH_THE_PACKAGE}
    wanted = files - {"agentvisor.__init__"} | {"agentvisor", "agentvisor.testing"}
    assert wanted <= MODULES.keys()
    page = (DOCS / "sdk.md").read_text()
    for module in MODULES.keys() - {"agentvisor.testing.plugin"}:
        file = SOURCE / "/".join(module.split(".")[1:])
        text = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
        [names] = re.findall(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
        section = page.partition(f"\n## `{module}`\n")[2].partition("\n## ")[0]
        for name in re.findall(r'"(\w+)"', names):
            assert re.search(rf"^### (class )?`([\w.]+\.)?{name}`$", section, re.MULTILINE), f"{module}.{name}"


@pytest.mark.thorough
def test_a_page_that_is_not_fresh_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("generated_page.py", "generate_errors_page.py"):
        (tmp_path / "scripts" / name).write_text((ROOT / "scripts" / name).read_text())
    page = tmp_path / "docs" / "errors.md"
    page.write_text((DOCS / "errors.md").read_text().replace("| 404 |", "| 410 |"))
    check = [sys.executable, tmp_path / "scripts" / "generate_errors_page.py", "--check"]
    stale = subprocess.run(check, capture_output=True, text=True, check=False)
    assert stale.returncode == 1
    assert "generate_errors_page.py" in stale.stderr
    subprocess.run(check[:-1], check=True)
    subprocess.run(check, check=True)
    assert page.read_text() == (DOCS / "errors.md").read_text()


def test_every_decision_is_listed_with_its_title_and_numbers_are_not_used_twice() -> None:
    files = sorted(file.name for file in (DOCS / "decisions").glob("[0-9]*.md"))
    listed = re.findall(r"^\| \[(\d+)\]\((.*?)\) \| .+ \|$", (DOCS / "decisions/README.md").read_text(), re.MULTILINE)
    assert sorted(name for _, name in listed) == files
    assert all(name.startswith(f"{number}-") for number, name in listed)
    numbers = [name[:4] for name in files]
    assert len(set(numbers)) == len(numbers)


def test_every_figure_of_the_comparison_was_measured() -> None:
    section = (DOCS / "comparison.md").read_text().partition("## Our measurements")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if "](benchmarks/" in row]
    assert len(rows) > 5
    for row in rows:
        *cells, source = row.strip("| ").split(" | ")
        [file] = re.findall(r"\((benchmarks/[\w-]+\.txt)\)", source)
        measured = (DOCS / file).read_text()
        figures = re.findall(r"\d+(?:\.\d+)?", " ".join(cells[1:]))
        assert figures
        for figure in figures:
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", measured), (
                f"{figure} is not in {file}: {row}"
            )


def test_every_source_of_the_comparison_is_cited_and_every_citation_has_its_source() -> None:
    text, _, sources = (DOCS / "comparison.md").read_text().partition("\n## Sources\n")
    numbered = set(re.findall(r"^(\d+)\. ", sources, re.MULTILINE))
    cited = {number for group in re.findall(r"\[(\d+(?:, \d+)*)\](?!\()", text) for number in group.split(", ")}
    assert cited == numbered
    assert re.search(r"looked at on \d{4}-\d{2}-\d{2}", sources)


def test_every_promise_has_a_test_or_a_page() -> None:
    table = (DOCS / "guarantees.md").read_text().partition("## What you may rely on")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| **")]
    assert len(rows) > 10
    assert [row for row in rows if not re.search(r"\| \[(test|tests|limits)\]\([\w./#-]+\) \|$", row)] == []
