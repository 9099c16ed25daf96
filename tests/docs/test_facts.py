"""What the pages say of settings, endings, files and routes is what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.generate_configuration_page import NOT_IN_FORCE
from tests.docs.blocks import ROOT, pages
from tests.flow.test_conformance_in_guest import APPLIES, DELTA_HISTORY, NEEDS_ANOTHER_THREAD
from tests.langgraph_conformance import CAPABILITIES

from agentvisor.core.errors import ERRORS
from agentvisor.core.runs import CONSEQUENCES, Ending, Follow
from agentvisor.host.config_settings import PROCESS_VARIABLES, SETTINGS
from agentvisor.host.metrics import TABLE

SECTIONS = {path.partition(".")[0] for path in SETTINGS if "." in path}
FOLLOWS = {Follow.END: "ends", Follow.RESTART: "restarts", Follow.AGAIN: "again at once", Follow.ATTACH: "goes on"}


GENERATED = sorted(path.name for path in (ROOT / "scripts").glob("generate_*.py") if "protocol" not in path.name)
"""Scripts that make pages, or parts of pages, from the code."""


@pytest.mark.thorough
@pytest.mark.parametrize("script", GENERATED)
def test_a_page_that_is_made_from_the_code_is_fresh(script: str) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / script, "--check"], check=True)


@pytest.mark.parametrize(
    "page", [one for one in pages() if one.name not in ("testing.md", "sdk.md")], ids=lambda page: page.name
)
def test_metrics_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`(agentvisor_[a-z_]+)[`{]", page.read_text()))
    assert named <= TABLE.keys(), "by the name that Prometheus shows: counters end in _total"


def test_a_setting_that_nothing_reads_is_said_to_be_not_in_force() -> None:
    code = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py") if file.name != "config_tree.py")
    unread = {path for path in SETTINGS if not re.search(rf"\.{path.rpartition('.')[2]}\b", code)}
    # One kind of sandbox is there, so nothing has to choose.
    assert unread - {"guest.sandbox"} == NOT_IN_FORCE.keys()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_settings_and_variables_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    named = re.findall(rf"`((?:{'|'.join(SECTIONS)})\.[a-z_.]+?)`", text)
    files = {str(file.relative_to(ROOT / "src/agentvisor")) for file in (ROOT / "src/agentvisor").rglob("*")}
    tables = {path.rpartition(".")[0] for path in SETTINGS}
    assert [name for name in named if name not in SETTINGS and name not in tables and name not in files] == []
    variables = {setting.variable for setting in SETTINGS.values()} | PROCESS_VARIABLES
    assert set(re.findall(r"`(AGENTVISOR_[A-Z_]+)`", text)) <= variables


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+://", target):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        assert place.exists(), target
        if anchor and place.suffix == ".py":
            assert re.search(rf"^(async )?def {anchor}\(", place.read_text(), re.MULTILINE), target
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, target


def test_the_recovery_page_has_every_ending_with_what_follows() -> None:
    page = (ROOT / "docs" / "recovery.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([\w ]+) \|$", page, re.MULTILINE))
    del rows["ending"]  # the head
    assert rows == {ending.name.lower(): FOLLOWS[CONSEQUENCES[ending].follow] for ending in Ending}


def rows_under(page: str, heading: str) -> list[str]:
    """The rows of the first table below a heading, without its head."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert set(lines[1]) <= set("|-"), heading
    return lines[2:]


@pytest.mark.parametrize("heading", ["What restarts by itself", "What ends a run"])
def test_every_failure_on_the_recovery_page_has_its_test(heading: str) -> None:
    rows = rows_under((ROOT / "docs" / "recovery.md").read_text(), heading)
    assert len(rows) > 10
    linked = [re.search(r"\| \[test\]\(\.\./(tests/[\w/]+\.py)#(test_\w+)\) \|$", row) for row in rows]
    assert [row for row, link in zip(rows, linked, strict=True) if link is None] == []


def test_every_ending_that_restarts_a_run_stands_in_the_recovery_pages_first_table() -> None:
    rows = "\n".join(rows_under((ROOT / "docs" / "recovery.md").read_text(), "What restarts by itself"))
    restarts = {ending.name.lower() for ending in Ending if CONSEQUENCES[ending].follow is Follow.RESTART}
    # Lost reports are no failure of a part: they are those of tests/faults/test_large_logs.py.
    assert restarts - {"report_lost"} == set(re.findall(r"`(\w+)`", rows)) & restarts


def test_the_readmes_commands_are_targets_of_make() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake (\w+)", (ROOT / "README.md").read_text())) <= targets


def test_the_errors_that_a_page_explains_exist() -> None:
    page = (ROOT / "docs" / "checkpointer.md").read_text().partition("## Errors")[2]
    named = re.findall(r"`([A-Z]\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert named
    assert set(named) <= {error.__name__ for error in ERRORS.values()}


def test_the_conformance_that_is_claimed_is_what_the_tests_hold() -> None:
    page = (ROOT / "docs" / "checkpointer.md").read_text()
    suite = sum(CAPABILITIES[capability] for capability in APPLIES - {DELTA_HISTORY})
    assert f"{sum(CAPABILITIES.values())} tests" in page
    assert f"In an agent, {suite - len(NEEDS_ANOTHER_THREAD)} of" in page


def test_every_figure_of_the_sizing_page_was_measured() -> None:
    page = (ROOT / "docs" / "sizing.md").read_text()
    measured = "\n".join(file.read_text() for file in (ROOT / "docs" / "benchmarks").glob("*.txt"))
    # The figures of its tables, with their units; what is multiplied from them stands in the text.
    rows = [line for line in page.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    figures = re.findall(r"(\d+\.\d+) (?:MiB|ms|KB|events)|(\d+) (?:KiB|KB)", "\n".join(rows))
    assert len(figures) > 10
    assert [one for one in ("".join(pair) for pair in figures) if not re.search(rf"\b{one}\b", measured)] == []
