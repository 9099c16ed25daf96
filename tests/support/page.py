"""The product page's code, cut out of the page itself, so that what is tested is what was promised."""

import ast
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "seed-checkpointing.txt"


def python_from(first_line: str) -> str:
    """The longest Python text of the page that begins with this line (its only occurrence)."""
    lines = PAGE.read_text().splitlines()
    begin = _only(lines, first_line)
    ends = [end for end in range(begin + 1, len(lines) + 1) if _is_code("\n".join(lines[begin:end]))]
    return "\n".join(lines[begin : ends[-1]]).rstrip() + "\n"


def lines_with(text: str) -> list[str]:
    """The page's lines that contain a text."""
    found = [line for line in PAGE.read_text().splitlines() if text in line]
    assert found, f"the page has no {text!r}"
    return found


def _only(lines: list[str], wanted: str) -> int:
    places = [number for number, line in enumerate(lines) if line == wanted]
    assert len(places) == 1, f"{wanted!r} stands {len(places)} times on the page"
    return places[0]


def _is_code(text: str) -> bool:
    try:
        *_, last = ast.parse(text).body or [None]
    except SyntaxError:
        return False
    # A heading of one word is a name to Python.
    return not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Name))
