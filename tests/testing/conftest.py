"""The fixtures of our own plugin, as a user has them, with a project in code."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

AGENTS = Path(__file__).parent / "agents"


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the agents did, outside of them."""
    return tmp_path_factory.mktemp("ledger") / "ledger.txt"


@pytest.fixture(scope="session")
def agentvisor_project(ledger: Path) -> dict[str, object]:
    environment = {"LEDGER": str(ledger)}
    return {
        "refunds": {
            "entrypoint": f"{AGENTS / 'refunds.py'}:graph",
            "framework": "langgraph",
            "env": environment,
            "preload": True,
        }
    }


@pytest.fixture
def did(ledger: Path) -> Callable[[str], Counter[str]]:
    """What the agents of a thread did, and how often."""

    def of(thread_id: str) -> Counter[str]:
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        return Counter(line.partition(" ")[2] for line in lines if line.startswith(thread_id))

    return of
