"""The pytest plugin: fixtures with a real host, faults from a seed, and what to type to see a failure again.

Every pytest run of an environment with AgentVisor loads this file: it imports nothing but pytest, and starts nothing
until a test asks for it.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agentvisor.testing.chance import Chance
    from agentvisor.testing.host import Host
    from agentvisor.testing.stage import Project, Stage

CONFIGURATIONS = ("agentvisor.yaml", "langgraph.json")
SEED = pytest.StashKey[int]()
HOST = pytest.StashKey["Host"]()
CHANCE = pytest.StashKey["Chance"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings of pytest's own."""
    group = parser.getgroup("agentvisor", "agents under test")
    group.addoption(
        "--agentvisor-seed",
        type=int,
        default=None,
        metavar="N",
        help="Draw the same faults as in the run that named N.",
    )
    parser.addini("agentvisor_project", "Folder or file with the agents' configuration, relative to the root folder.")


@pytest.fixture(scope="session")
def agentvisor_project(pytestconfig: pytest.Config) -> Project:
    """What is under test; override it to say otherwise.

    A folder with an agentvisor.yaml or a langgraph.json, such a file, or agents in code: {"name": "agent.py:graph"}.
    By default what `agentvisor_project` in pytest's configuration names, else pytest's root folder.
    """
    place = pytestconfig.rootpath / str(pytestconfig.getini("agentvisor_project") or ".")
    if place.is_dir() and not any((place / name).is_file() for name in CONFIGURATIONS):
        raise pytest.UsageError(
            f"agentvisor_host: there is no {' or '.join(CONFIGURATIONS)} in {place}; set agentvisor_project in the "
            "configuration of pytest, or override the fixture agentvisor_project"
        )
    return place


@pytest.fixture(scope="session")
def agentvisor_settings() -> dict[str, object]:
    """Settings of the host by file key, as {"temporal.run_restart.max_attempts": 0}; override it to have some."""
    return {}


@pytest.fixture(scope="session")
def agentvisor_stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """What the hosts of a session share: a Temporal server, which is started when the first host is."""
    try:
        from agentvisor.testing.stage import Stage
    except ModuleNotFoundError as error:
        raise pytest.UsageError(
            f"the host's packages are needed, and {error.name} is missing: pip install 'agentvisor[host]'"
        ) from error

    stage = Stage(tmp_path_factory.mktemp("agentvisor"))
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture
def agentvisor_host(
    request: pytest.FixtureRequest,
    agentvisor_stage: Stage,
    agentvisor_project: Project,
    agentvisor_settings: dict[str, object],
) -> Generator[Host]:
    """A running host of the project. Tests of the same project share its process: give each its own threads."""
    host = agentvisor_stage.host(agentvisor_project, agentvisor_settings, request.config.rootpath)
    request.node.stash[HOST] = host
    yield host
    host.leave()


@pytest.fixture
def agentvisor_chance(request: pytest.FixtureRequest) -> Chance:
    """Draws faults from the seed: `--agentvisor-seed N`, or one that a failure names."""
    from agentvisor.testing.chance import Chance

    # Wherever pytest is started, the test is the same, and so is what is drawn for it.
    item: pytest.Item = request.node
    chance = Chance(_seed(request.config), f"{item.path.name}::{item.nodeid.partition('::')[2]}")
    request.node.stash[CHANCE] = chance
    return chance


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what is known to the report of a test that failed."""
    report = yield
    host, chance = item.stash.get(HOST, None), item.stash.get(CHANCE, None)
    if report.when == "call" and report.failed and (host or chance):
        report.sections.append(("agentvisor", "\n".join(_told(item, host, chance))))
    return report


def _told(item: pytest.Item, host: Host | None, chance: Chance | None) -> Generator[str]:
    if chance is not None:
        yield f"seed {chance.seed}, drawn: {', '.join(map(str, chance.drawn)) or 'nothing'}"
        file = os.path.relpath(item.path, item.config.invocation_params.dir)
        test = shlex.quote(f"{file}::{item.nodeid.partition('::')[2]}")
        yield f"again: pytest {test} --agentvisor-seed {chance.seed}"
    if host is not None:
        yield from (thread.told() for thread in host.threads)
        yield f"log of the host: {host.log}"


def _seed(config: pytest.Config) -> int:
    if SEED not in config.stash:
        given: int | None = config.getoption("--agentvisor-seed")
        config.stash[SEED] = secrets.randbelow(1_000_000) if given is None else given
    return config.stash[SEED]
