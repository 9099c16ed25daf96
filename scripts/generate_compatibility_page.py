"""Writes the list in tests/oracle/differences.yaml into docs/compatibility.md, or with --check looks for it there."""

import sys
import textwrap

import yaml

from generated_page import DOCS, between, write_or_check

PAGE = DOCS / "compatibility.md"
DIFFERENCES = DOCS.parent / "tests" / "oracle" / "differences.yaml"
BEGIN = "<!-- From tests/oracle/differences.yaml, by scripts/generate_compatibility_page.py: change it there. -->\n"
END = "<!-- To here. -->\n"


def main() -> int:
    """Write, or check; returns the exit code."""
    return write_or_check(PAGE, lambda: between(PAGE, BEGIN, END, listed()), says=__doc__)


def listed() -> str:
    """The differences, as a list of the page."""
    reasons = [one["reason"].strip() for one in yaml.safe_load(DIFFERENCES.read_text(encoding="utf-8"))["differences"]]
    return "".join(f"{_wrapped(one)}\n" for one in reasons)


def _wrapped(reason: str) -> str:
    return textwrap.fill(f"- {reason}", 119, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
