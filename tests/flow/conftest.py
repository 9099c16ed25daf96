"""Projects as users lay them out, and hosts that run them on a real Temporal server."""

import json
import os
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from tests.support.host_process import HostProcess

AGENTS = Path(__file__).parent / "agents"
START_METHODS = ("zygote", "exec")

_NAMES = {
    "tools": "slow_tools.py:graph",
    "five": "five_nodes.py:graph",
    **{name: f"plain.py:{name}" for name in ("echo", "fails", "exits", "counts", "sleeps", "talks")},
    "broken": "broken.py:agent",
    "missing": "plain.py:ecko",
}

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

    def __init__(self, folder: Path, temporal: str, start_method: str) -> None:
        self.folder = folder
        self.temporal = temporal
        self.effects_file = folder / "effects"
        self.gate = folder / "gate"
        """Agents wait for this file where a test says so."""
        self.hosts: list[HostProcess] = []
        self.more: dict[str, str] = {}
        """Further agents: name to entrypoint."""
        self._settings = CONFIG.format(queue=f"flow-{uuid4()}", start_method=start_method)

    def host(self, environment: dict[str, str] | None = None, **agent_environment: str) -> HostProcess:
        """Start a host with all the agents; the variables are those of the agents' processes."""
        given = {"EFFECTS": str(self.effects_file), "GATE": str(self.gate), **agent_environment}
        agents = {
            name: {"entrypoint": f"{AGENTS}/{place}", "env": given, "python_path": [str(AGENTS.parent)]}
            for name, place in {**_NAMES, **self.more}.items()
        }
        (self.folder / "agentvisor.yaml").write_text(f"agents: {json.dumps(agents)}\n{self._settings}")
        host = HostProcess(self.folder, self.temporal, environment or {})
        self.hosts.append(host)
        return host.start()

    def effects(self) -> list[dict[str, object]]:
        if not self.effects_file.exists():
            return []
        return [json.loads(line) for line in self.effects_file.read_text().splitlines()]

    def did(self) -> Counter[str]:
        return Counter(str(one["what"]) for one in self.effects())

    def pid_of(self, what: str) -> int:
        """The agent process that did this last."""
        return [int(str(one["pid"])) for one in self.effects() if one["what"] == what][-1]


def client_of(host: HostProcess) -> SyncLangGraphClient:
    """LangGraph's own client."""
    return get_sync_client(url=host.url)


@pytest.fixture(params=START_METHODS)
def start_method(request: pytest.FixtureRequest) -> str:
    """How agent processes start: the flow holds with both."""
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, temporal: str, start_method: str) -> Generator[Project]:
    """A project with both start methods; its hosts end with the test."""
    yield from _project(tmp_path, temporal, start_method)


@pytest.fixture
def zygote_project(tmp_path: Path, temporal: str) -> Generator[Project]:
    """A project where how processes start makes no difference to what is shown."""
    yield from _project(tmp_path, temporal, "zygote")


def _project(folder: Path, temporal: str, start_method: str) -> Generator[Project]:
    project = Project(folder, temporal, start_method)
    try:
        yield project
    finally:
        for host in project.hosts:
            host.stop()


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
