"""What is taken for a CrewAI agent without being told; and the environment in which CrewAI is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from crewai import Agent, Crew, Flow, Task
from crewai.flow.flow import start
from crewai.project import CrewBase

from agentvisor.core.errors import InvalidInput
from agentvisor.guest.runner import told_framework
from agentvisor.guest.runners.crewai_agent import subject_of
from agentvisor.testing.crewai import ScriptedLLM


def make() -> Crew:
    by = Agent(role="r", goal="g", backstory="b", llm=ScriptedLLM(["x"]))
    return Crew(agents=[by], tasks=[Task(description="d", expected_output="e", agent=by)])


def make_flow() -> Flow:  # type: ignore[type-arg]
    return Own()


class Own(Flow):  # type: ignore[type-arg]
    @start()
    def begin(self) -> None:
        """Nothing."""


@CrewBase
class Based:
    agents_config = None
    tasks_config = None

    def crew(self) -> Crew:
        return make()


def texts() -> "Crew":
    return make()


AGENTS = {
    "a crew": make(), "a function for a crew": make, "one with a text for a type": texts,
    "a flow": Own(), "its class": Own, "a function for a flow": make_flow,
    "a class with CrewBase": Based, "an object of it": Based(),
}  # fmt: skip


@pytest.mark.parametrize("name", AGENTS)
def test_crews_and_flows_are_known_by_what_they_are(name: str) -> None:
    agent = AGENTS[name]
    assert told_framework(agent) == "crewai"
    assert isinstance(subject_of(agent, "agent.py:it"), Crew | Flow)


@pytest.mark.parametrize("agent", [lambda: 7, 7, "crew"], ids=["a function", "a number", "a text"])
def test_what_makes_neither_is_refused(agent: object) -> None:
    with pytest.raises(InvalidInput, match=r"agent\.py:it"):
        subject_of(agent, "agent.py:it")


TELLS = """
import json, os, sys
from agentvisor.guest.runners.crewai_environment import set_environment
set_environment()
import crewai
from crewai.telemetry import Telemetry
from crewai_core.paths import db_storage_path
from pathlib import Path
Path(db_storage_path(), "left").touch()
threads = len(os.listdir("/proc/self/task"))
print(json.dumps({"ready": Telemetry().ready, "storage": db_storage_path(), "threads": threads}))
"""


def told(**environment: str) -> dict[str, object]:
    command = [sys.executable, "-c", TELLS]
    ran = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_crewai_reports_to_nobody_and_writes_where_its_run_may(tmp_path: Path) -> None:
    storage = str(tmp_path / "agentvisor-crewai")
    # A forked process finds the folder of the warm one that it comes from.
    warm = {"CREWAI_STORAGE_DIR": str(tmp_path.parent / "agentvisor-crewai")}
    found = told(AGENTVISOR_WORKSPACE=str(tmp_path), OPENBLAS_NUM_THREADS="1", **warm)
    assert found == {"ready": False, "storage": storage, "threads": 1}


def test_a_storage_folder_of_the_users_is_left_alone(tmp_path: Path) -> None:
    found = told(AGENTVISOR_WORKSPACE="/nowhere", CREWAI_STORAGE_DIR=str(tmp_path))
    assert found["storage"] == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["left"]
