"""Projects as users lay them out, and hosts that run them on a real Temporal server."""

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from tests.support.host_process import HostProcess
from tests.support.temporal import TemporalProcess

from agentvisor.testing.host import Host
from agentvisor.testing.stage import Stage

AGENTS = Path(__file__).parent / "agents"
SDK_AGENTS = Path(__file__).parent / "sdk_agents"
"""Those of the OpenAI Agents SDK, which find the SDK under the name `agents`."""

_NAMES = {
    "tools": "slow_tools.py:graph",
    "five": "five_nodes.py:graph",
    **{name: f"plain.py:{name}" for name in ("echo", "fails", "exits", "counts", "sleeps", "talks")},
    "broken": "broken.py:agent",
    "missing": "plain.py:ecko",
}

_FRAMEWORKS = {
    "make": "langgraph",
    "function": "function",
    "crewai": "crewai",
    "openai_agents": "openai-agents",
    **dict.fromkeys(("pays", "together", "asks", "notes", "holds", "holding", "nested"), "strands"),
}
"""By the agent's name or its attribute's. A function that makes a graph cannot be told from one that is the agent; and
what is known is not found out."""

CONFIG = """\
temporal:
  task_queue: {queue}
  heartbeat_timeout: 2s
  idle_heartbeat: 500ms
  session_idle_timeout: 1s
  run_restart: {{initial_backoff: 50ms}}
guest: {{start_method: {start_method}, stop_grace: 500ms}}
"""


class Project:
    """A folder with an agentvisor.yaml, the hosts that were started in it, and what its agents did."""

    def __init__(
        self, folder: Path, temporal: str, start_method: str, names: Mapping[str, str] = MappingProxyType(_NAMES)
    ) -> None:
        self.folder = folder
        self.names = names
        """The agents: name to entrypoint, in `agents/` unless it is absolute."""
        self.temporal = temporal
        self.effects_file = folder / "effects"
        self.gate = folder / "gate"
        """Agents wait for this file where a test says so."""
        self.hosts: list[HostProcess] = []
        self.tested: Host | None = None
        """The host that agentvisor.testing has started."""
        self.more: dict[str, str] = {}
        """Further agents: name to entrypoint."""
        self._settings = CONFIG.format(queue=f"flow-{uuid4()}", start_method=start_method)

    def host(self, environment: dict[str, str] | None = None, **agent_environment: str) -> HostProcess:
        """Start a host with all the agents; the variables are those of the agents' processes."""
        return self.new_host(environment, **agent_environment).start()

    def new_host(
        self, environment: dict[str, str] | None = None, *, command: str = "dev", **agent_environment: str
    ) -> HostProcess:
        """A host that is not started yet."""
        agents = self.agents(**agent_environment)
        (self.folder / "agentvisor.yaml").write_text(f"agents: {json.dumps(agents)}\n{self._settings}")
        host = HostProcess(self.folder, self.temporal, environment or {}, command=command)
        self.hosts.append(host)
        return host

    def agents(self, **environment: str) -> dict[str, object]:
        """The agents as a configuration names them."""
        given = {"EFFECTS": str(self.effects_file), "GATE": str(self.gate), **environment}
        return {
            name: {"entrypoint": str(AGENTS / place), "env": given, "python_path": _python_path(place)}
            | _framework(name, place.partition(":")[2])
            for name, place in {**self.names, **self.more}.items()
        }

    def effects(self) -> list[dict[str, object]]:
        if not self.effects_file.exists():
            return []
        written = self.effects_file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in written if line.endswith("\n")]  # the last one may be half there

    def forget(self) -> None:
        """As if nothing had been done yet."""
        self.effects_file.unlink(missing_ok=True)
        self.gate.unlink(missing_ok=True)

    def did(self) -> Counter[str]:
        return Counter(str(one["what"]) for one in self.effects())

    def pid_of(self, what: str) -> int:
        """The agent process that did this last."""
        return [int(str(one["pid"])) for one in self.effects() if one["what"] == what][-1]


def _python_path(place: str) -> list[str]:
    return [str(AGENTS.parents[2] if place.startswith(str(SDK_AGENTS)) else AGENTS.parent)]


def _framework(*names: str) -> dict[str, object]:
    known = [_FRAMEWORKS[one] for one in names if one in _FRAMEWORKS]
    return {"framework": known[0]} if known else {}


def client_of(host: HostProcess | Host) -> SyncLangGraphClient:
    """LangGraph's own client."""
    return _client(host.url)


@cache
def _client(url: str) -> SyncLangGraphClient:
    # Making one reads all certificates of the machine, which takes longer than most requests.
    return get_sync_client(url=url)


def called(client: SyncLangGraphClient, what: str, thread: str = "", **arguments: object) -> tuple[str, Any]:
    """The thread, and what the agent `calls` returned for a function in `agents/`, "module:name"."""
    thread = thread or str(uuid4())
    given = {"call": what, "with": arguments}
    return thread, client.runs.wait(thread, "calls", input=given, if_not_exists="create")


@pytest.fixture(params=["zygote", pytest.param("exec", marks=pytest.mark.slow)])
def start_method(request: pytest.FixtureRequest) -> str:
    """How agent processes start: the flow holds with both (tests/host/test_guests.py has both in each run)."""
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, temporal: str, start_method: str) -> Generator[Project]:
    """A project with both start methods; its hosts end with the test."""
    yield from _project(tmp_path, temporal, start_method)


@pytest.fixture
def zygote_project(tmp_path: Path, temporal: str) -> Generator[Project]:
    """A project where how processes start makes no difference to what is shown."""
    yield from _project(tmp_path, temporal, "zygote")


@pytest.fixture
def own_project(tmp_path: Path, temporal_process: TemporalProcess) -> Generator[Project]:
    """A project on a Temporal server of the test's own, which it may kill."""
    project = Project(tmp_path, temporal_process.address, "zygote")
    try:
        yield project
    finally:
        for host in project.hosts:
            # Nothing is given back to a server that may be dead.
            host.kill()


def _project(folder: Path, temporal: str, start_method: str) -> Generator[Project]:
    project = Project(folder, temporal, start_method)
    try:
        yield project
    finally:
        for host in project.hosts:
            host.stop()


def _hosts(
    folders: pytest.TempPathFactory, temporal: str, names: dict[str, str] | None
) -> Generator[Callable[[str], Project]]:
    """A running host of each start method, started when it is first asked for."""
    projects: dict[str, Project] = {}

    def of(start_method: str) -> Project:
        if start_method not in projects:
            project = Project(folders.mktemp(start_method), temporal, start_method, *([names] if names else []))
            projects[start_method] = project
            project.host(FOLDER=str(project.folder))
        return projects[start_method]

    yield of
    for project in projects.values():
        for host in project.hosts:
            host.stop()


@pytest.fixture(scope="session")
def shared_hosts(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Callable[[str], Project]]:
    """A running host of each start method, for tests that harm none: one agent calls what it is told to, one is graphs.

    Every agent of a host has a guest of its own: two agents are quick to start, whatever the tests call in them.
    """
    yield from _hosts(tmp_path_factory, temporal, {"calls": "calls.py:call", "graph": "graphs.py:make"})


@pytest.fixture
def shared(shared_hosts: Callable[[str], Project]) -> Project:
    """The running host of a session, with warm processes."""
    return shared_hosts("zygote")


@pytest.fixture
def shared_with_both(shared_hosts: Callable[[str], Project], start_method: str) -> Project:
    """The running host of a session, with each start method."""
    return shared_hosts(start_method)


@pytest.fixture(scope="session")
def victim_hosts(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Callable[[str], Project]]:
    """A running host of each start method, for tests that kill agents, and nothing that is not theirs."""
    yield from _hosts(tmp_path_factory, temporal, {"graph": "victims.py:make", "call": "victims.py:call"})


@pytest.fixture
def victims(victim_hosts: Callable[[str], Project], start_method: str) -> Project:
    """The running host of a session for agents that are killed, with each start method."""
    return victim_hosts(start_method)


@pytest.fixture
def warm_victims(victim_hosts: Callable[[str], Project]) -> Project:
    """The same, where how processes start makes no difference to what is shown."""
    return victim_hosts("zygote")


@pytest.fixture(scope="session")
def tested_hosts(tmp_path_factory: pytest.TempPathFactory, agentvisor_stage: Stage) -> Callable[[str], Project]:
    """The same agents on hosts of agentvisor.testing, whose tests say at which operation what is killed."""

    @cache
    def of(start_method: str) -> Project:
        folder = tmp_path_factory.mktemp(f"tested-{start_method}")
        names = {"graph": "victims.py:make", "call": "victims.py:call"}
        project = Project(folder, agentvisor_stage.temporal.address, start_method, names)
        agents = project.agents(FOLDER=str(folder))
        project.tested = agentvisor_stage.host(agents, {"guest.start_method": start_method}, folder)
        return project

    return of


DESKS = {
    "desk": "desk.py:run",
    "plain": "deadlines.py:plain",
    "graph": "deadlines.py:graph",
    "swallowing": "deadlines.py:swallowing",
}
"""Agents that ask people, each in another way."""


@pytest.fixture(scope="session")
def desks(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    """A running host of a session with agents that ask."""
    for project in _hosts(tmp_path_factory, temporal, DESKS):
        yield project("zygote")


@pytest.fixture(scope="session")
def line_hosts(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Callable[[str], Project]]:
    """A running host of each start method with all the agents, for tests that kill nothing."""
    yield from _hosts(tmp_path_factory, temporal, None)


@pytest.fixture
def line(line_hosts: Callable[[str], Project], start_method: str) -> Project:
    """The running host with all the agents, with each start method."""
    line = line_hosts(start_method)
    line.forget()
    return line


@pytest.fixture
def zygote_line(line_hosts: Callable[[str], Project]) -> Project:
    """The same, where how processes start makes no difference to what is shown."""
    line = line_hosts("zygote")
    line.forget()
    return line


@pytest.fixture
def agent_is_alive() -> Callable[[int], bool]:
    """Whether a process is there, dead ones that nobody has collected aside."""

    def alive(pid: int) -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    return alive


os.environ.setdefault("LANGSMITH_TRACING", "false")
