"""A notebook outside any run: its graph's checkpoints are the thread's, through restarts of the host, beside runs."""

import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.types import Command
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from tests.flow.agents.counting import build
from tests.flow.conftest import AGENTS
from tests.support.dev_process import DevProcess
from tests.support.waiting_sync import until

from agentvisor.core.errors import Conflict
from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow

CONFIG = """\
agents:
  counting:
    entrypoint: {agents}/counting.py:graph
    python_path: [{flow}]
    env: {{FOLDER: {folder}}}
temporal:
  task_queue: outside-{unique}
  heartbeat_timeout: 2s
  idle_heartbeat: 500ms
  session_idle_timeout: 1s
  run_restart: {{initial_backoff: 50ms}}
guest: {{stop_grace: 200ms}}
"""
NOTEBOOK = """\
import sys
from langgraph.types import Command
from tests.flow.agents.counting import build
from agentvisor.langgraph import AgentVisorCheckpointer

graph = build(AgentVisorCheckpointer())
config = {"configurable": {"thread_id": sys.argv[1]}}
print(graph.invoke(eval(sys.argv[2]), config))
"""


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[DevProcess]:
    """A host that is started again at the same address."""
    folder = tmp_path_factory.mktemp("outside")
    config = CONFIG.format(agents=AGENTS, flow=AGENTS.parent, folder=folder, unique=uuid4())
    (folder / "agentvisor.yaml").write_text(config)
    dev = DevProcess(folder, "--no-reload", "--temporal-address", temporal).start()
    try:
        yield dev
    finally:
        dev.end()


@pytest.fixture
def client(dev: DevProcess) -> SyncLangGraphClient:
    return get_sync_client(url=dev.url)


def of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def in_a_process(dev: DevProcess, thread: str, given: str) -> str:
    """Run a notebook that is started anew; what it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, thread, given],
        cwd=Path(__file__).parents[2],
        env={"AGENTVISOR_ENDPOINT": dev.url, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_notebooks_graph_goes_on_through_restarts_of_the_host(dev: DevProcess, client: SyncLangGraphClient) -> None:
    thread, asking = str(uuid4()), str(uuid4())
    graph = build(AgentVisorCheckpointer(endpoint=dev.url))
    assert graph.invoke({}, of(thread))["counted"] == 1
    assert "__interrupt__" in in_a_process(dev, asking, "{'ask': True}")
    dev.end(signal.SIGKILL)
    dev.start()
    assert graph.invoke({}, of(thread))["counted"] == 2
    # The question of a process that is gone is answered by another.
    assert in_a_process(dev, asking, "Command(resume='yes')").endswith("'answers': ['yes']}")
    dev.end(signal.SIGTERM)
    dev.start()
    assert graph.invoke({}, of(thread))["counted"] == 3
    state = client.threads.get_state(thread)
    assert state["values"]["counted"] == 3
    steps = [one["metadata"]["step"] for one in client.threads.get_history(thread, limit=100)]
    assert steps == sorted(steps, reverse=True)
    assert len(steps) == 12
    assert client.threads.get(thread)["status"] in ("idle", "busy")  # busy while its session is open


def test_writing_beside_a_live_run_is_refused_and_reading_is_not(dev: DevProcess, client: SyncLangGraphClient) -> None:
    thread = str(uuid4())
    graph = build(AgentVisorCheckpointer(endpoint=dev.url))
    run = client.runs.create(thread, "counting", input={"wait": True}, if_not_exists="create")
    until((dev.folder / f"{thread}.began").exists)
    with pytest.raises(Conflict, match=thread):
        graph.invoke({"wait": False}, of(thread), durability="sync")
    with pytest.raises(Conflict, match=thread):
        graph.update_state(of(thread), {"counted": 40})
    assert graph.get_state(of(thread)).next == ("count",)
    (dev.folder / f"{thread}.gate").touch()
    values = client.runs.join(thread, run["run_id"])
    assert isinstance(values, dict)
    assert values["counted"] == 1
    assert graph.update_state(of(thread), {"counted": 40})
    assert graph.get_state(of(thread)).values["counted"] == 41


def test_a_run_takes_the_thread_over_from_a_notebook_that_is_done(dev: DevProcess, client: SyncLangGraphClient) -> None:
    thread = str(uuid4())
    build(AgentVisorCheckpointer(endpoint=dev.url)).invoke({}, of(thread))
    values = client.runs.wait(thread, "counting", input={"ask": True})
    assert isinstance(values, dict)
    assert values["counted"] == 2
    resumed = build(AgentVisorCheckpointer(endpoint=dev.url)).invoke(Command(resume="by hand"), of(thread))
    assert resumed["answers"] == ["by hand"]
    assert client.threads.get_state(thread)["next"] == []


async def test_the_asynchronous_calls_do_the_same(dev: DevProcess) -> None:
    thread = str(uuid4())
    graph = build(AgentVisorCheckpointer(endpoint=dev.url))
    assert (await graph.ainvoke({}, of(thread)))["counted"] == 1
    states = [state async for state in graph.aget_state_history(of(thread))]
    assert len(states) == 4
    assert states[0].values["counted"] == 1


def test_clients_of_two_hosts_write_one_thread_in_turn(dev: DevProcess, temporal: str) -> None:
    thread = str(uuid4())
    other = DevProcess(dev.folder, "--no-reload", "--temporal-address", temporal)
    other.errors = dev.folder / "other.log"
    other.start()
    try:
        for turn, host in enumerate((dev, other, dev), start=1):
            # The other host's session is in the way until it has been quiet for temporal.session_idle_timeout.
            assert build(AgentVisorCheckpointer(endpoint=host.url)).invoke({}, of(thread))["counted"] == turn
    finally:
        other.end()
