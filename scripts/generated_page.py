"""What every script that generates a page does with it: writes it, or with --check says that it is not fresh."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write_or_check(page: Path, fresh: Callable[[], str], *, says: str | None) -> int:
    """Do what the command line asks for; returns the exit code.

    Args:
        page: the page's file.
        fresh: makes its text.
        says: what `--help` says: the script's docstring.
    """
    parser = argparse.ArgumentParser(description=says)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the page is not fresh")
    check = bool(parser.parse_args().check)
    text = fresh()
    if not check:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page} is not fresh: run {sys.argv[0]}", file=sys.stderr)
    return 1


def between(page: Path, begin: str, end: str, fresh: str) -> str:
    """A page that is written by hand, with the part between two of its lines made anew."""
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"{page} lacks the lines {begin!r} and {end!r}")
    return before + begin + fresh + end + after


def cell(text: str) -> str:
    """A text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
