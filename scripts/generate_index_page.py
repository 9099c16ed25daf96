"""Writes the nav of mkdocs.yml into docs/index.md, for readers on a code host, or with --check looks for it there."""

import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import yaml

from generated_page import DOCS, between, write_or_check

PAGE = DOCS / "index.md"
BEGIN = "<!-- From mkdocs.yml, by scripts/generate_index_page.py: change it there. -->\n\n"
END = "<!-- To here. -->\n"

# Two tags of mkdocs.yml are for mkdocs alone.
yaml.SafeLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def main() -> int:
    """Write, or check; returns the exit code."""
    return write_or_check(PAGE, lambda: between(PAGE, BEGIN, END, listed()), says=__doc__)


def listed() -> str:
    """A section for each kind of page, an entry for each group; pages that are there."""
    nav = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    lines: list[str] = []
    for entry in nav:
        ((kind, places),) = entry.items()
        if isinstance(places, list):
            lines += [f"## {kind}", "", *_entries(places), ""]
    return "\n".join(lines) + "\n"


def _entries(places: list[Any]) -> Iterator[str]:
    alone: list[str] = []
    for entry in places:
        ((title, place),) = entry.items()
        if isinstance(place, list):
            yield _wrapped(f"- **{title}**: {', '.join(_links(place))}.")
        else:
            alone += _links([entry])
    if alone:
        yield _wrapped(f"- {', '.join(alone)}.")


def _links(places: list[Any]) -> list[str]:
    links: list[str] = []
    for entry in places:
        ((title, place),) = entry.items()
        target = f"{place}README.md" if place.endswith("/") else place
        if (DOCS / target).exists():
            links.append(f"[{title}]({target})")
    return links


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 119, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
