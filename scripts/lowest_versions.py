"""Prints what pip installs to have the oldest supported version of frameworks, and what the tests need beside them.

`python scripts/lowest_versions.py [EXTRA...]`: without any, of all that go together. The bounds are those of
pyproject.toml's extras. Of the tests' own needs only the names are taken: the bounds that they have there go with the
newest frameworks.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("langgraph", "strands", "adk", "openai-agents")
"""CrewAI's cannot be installed beside these."""
TESTS_NEED = (
    "hypothesis", "langchain", "langgraph-checkpoint-conformance", "langgraph-checkpoint-sqlite", "langgraph-sdk",
    "moto", "psycopg", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist",
)  # fmt: skip

_BOUND = re.compile(r"^([\w.-]+)(\[[\w,]+\])?>=([\w.]+)")


def main() -> None:
    known: dict[str, list[str]] = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    lowest = [lowest_of(one) for extra in sys.argv[1:] or EXTRAS for one in known[extra]]
    names = {re.split(r"[\[>=<]", one)[0]: one for one in known["dev"]}
    print(*lowest, *(name for name in TESTS_NEED if name in names), sep="\n")


def lowest_of(requirement: str) -> str:
    """The requirement with its lower bound as the version."""
    bound = _BOUND.match(requirement)
    if bound is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound")
    return f"{bound[1]}{bound[2] or ''}=={bound[3]}"


if __name__ == "__main__":
    main()
