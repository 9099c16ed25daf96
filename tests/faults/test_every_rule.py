"""Every rule of the journal that the documentation names has a test with its name in the test's name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE_ROW = re.compile(r"^\| ([A-Z]{4,}(?:, [A-Z]{4,})*) \|", re.MULTILINE)
TEST = re.compile(r"def (test_\w+)")

RULES = sorted(
    rule for row in TABLE_ROW.findall((ROOT / "docs" / "journal.md").read_text()) for rule in row.split(", ")
)
TESTS = [
    test
    for folder in ("faults", "core", "host")
    for path in (ROOT / "tests" / folder).glob("test_*.py")
    for test in TEST.findall(path.read_text())
]


def test_the_table_was_found() -> None:
    assert {"OWNRETRY", "UNCFOLD", "DESCFIRST", "READCONS"} <= set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_has_its_test(rule: str) -> None:
    assert any(rule.lower() in test.split("_") for test in TESTS)
