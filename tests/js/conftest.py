"""What a JavaScript client finds: a project of LangGraph's, started with `agentvisor dev` and no other change."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.support.dev_process import DevProcess

AGENTS = Path(__file__).parent / "agents.py"
GRAPHS = ("counting", "slow", "failing", "asking", "outer", "talking")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[DevProcess]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "agents.py").write_text(AGENTS.read_text())
    graphs = {name: f"./agents.py:{name}" for name in GRAPHS}
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    dev = DevProcess(folder, "--no-reload").start()
    try:
        yield dev
    finally:
        dev.end()
