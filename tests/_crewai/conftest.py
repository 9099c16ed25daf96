"""Hosts with CrewAI agents. CrewAI has an environment of its own (make test-crewai): elsewhere nothing is collected."""

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("crewai") else ["test_*.py"]

if find_spec("crewai"):
    from tests.flow.conftest import Project

    CANARY = "sk-CANARY-of-the-crew"
    AGENTS = Path(__file__).parent / "agents"
    NAMES = {"desk": "desk.py:made"}

    class Desk(Project):
        """A project with the agents of this folder."""

        def agents(self, **environment: str) -> dict[str, object]:
            given = {"EFFECTS": str(self.effects_file), "FOLDER": str(self.folder), "CANARY": CANARY, **environment}
            paths = [str(AGENTS), str(AGENTS.parents[1] / "flow")]
            return {
                name: {"entrypoint": str(AGENTS / place), "env": given, "python_path": paths, "framework": "crewai"}
                for name, place in self.names.items()
            }

    @pytest.fixture(scope="session")
    def desk(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Desk]:
        """A running host, for tests that kill agents and nothing that is not theirs."""
        project = Desk(tmp_path_factory.mktemp("desk"), temporal, "zygote", NAMES)
        project.host()
        yield project
        for host in project.hosts:
            host.stop()
