"""Writes the list in tests/oracle/differences.yaml into docs/compatibility.md, or with --check looks for it there."""

import argparse
import sys
import textwrap
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
DIFFERENCES = ROOT / "tests" / "oracle" / "differences.yaml"
BEGIN = "<!-- From tests/oracle/differences.yaml, by scripts/generate_compatibility_page.py: change it there. -->\n"
END = "<!-- To here. -->\n"


def main() -> int:
    """Write, or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the page is not fresh")
    text = PAGE.read_text(encoding="utf-8")
    fresh = page(text)
    if not parser.parse_args().check:
        PAGE.write_text(fresh, encoding="utf-8")
        return 0
    if text == fresh:
        return 0
    print(f"{PAGE} is not fresh: run {Path(__file__).name}", file=sys.stderr)
    return 1


def page(text: str) -> str:
    """The page with the list as it is in the file."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the lines {BEGIN!r} and {END!r}")
    return before + begin + listed() + end + after


def listed() -> str:
    """The differences, as a list of the page."""
    reasons = [one["reason"].strip() for one in yaml.safe_load(DIFFERENCES.read_text(encoding="utf-8"))["differences"]]
    return "".join(f"{_wrapped(one)}\n" for one in reasons)


def _wrapped(reason: str) -> str:
    return textwrap.fill(f"- {reason}", 119, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
