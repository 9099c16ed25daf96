"""The hosts of the compose file, as processes: started, asked for their health, and stopped as the file says."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from tests.deploy.compose import composed, filled
from tests.deploy.dockerfile import image
from tests.deploy.files import BIN, DEPLOY
from tests.support.temporal import free_ports
from tests.support.waiting_sync import until

from agentvisor.host import leash
from agentvisor.host.config_units import parse_duration

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

STEPS = """\
import operator, os, time
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph

State = TypedDict("State", {"wanted": int, "done": Annotated[list[int], operator.add]})

def step(state):
    number = len(state["done"]) + 1
    with open(os.environ["LEDGER"], "a") as ledger:
        print("began", number, os.getpid(), file=ledger, flush=True)
        time.sleep(0.4)
        print("ended", number, os.getpid(), file=ledger, flush=True)
    return {"done": [number]}

builder = StateGraph(State).add_node("step", step).add_edge(START, "step")
builder.add_conditional_edges("step", lambda state: "step" if len(state["done"]) < state["wanted"] else END)
graph = builder.compile()
"""
WANTED = 12


class Container:
    """What a container of the service would be, without its walls: its ports and folders are of this machine."""

    def __init__(self, service: dict[str, Any], app: Path, data: Path, temporal: str) -> None:
        self.service = service
        self.port = free_ports(1)[0]
        self.log = data.with_suffix(".log")
        data.mkdir(mode=0o700)
        made = image()
        environment = made.environment | service["environment"]
        self.environment = {
            **os.environ,
            **{name: str(value) for name, value in environment.items()},
            "AGENTVISOR_DEV_DATA_DIR": str(data),
            "HOME": str(data),
            "AGENTVISOR_TEMPORAL_ADDRESS": environment["AGENTVISOR_TEMPORAL_ADDRESS"].replace(
                "temporal:7233", temporal
            ),
        }
        program = [BIN / one for one in made.entrypoint[-1:]]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    leash.__file__,
                    str(os.getpid()),
                    *map(self.here, [*program, *service["command"]]),
                ],
                cwd=app,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def here(self, text: object) -> str:
        """With the port that the container's stands for."""
        return str(text).replace("8090", str(self.port))

    def is_healthy(self) -> bool:
        """What its health check says."""
        kind, program, *arguments = self.service["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        command = [sys.executable, *map(self.here, arguments)]
        return (
            subprocess.run(command, env=self.environment, capture_output=True, timeout=30, check=False).returncode == 0
        )

    @property
    def client(self) -> SyncLangGraphClient:
        key = self.environment["AGENTVISOR_HTTP_OPERATOR_KEY"]
        return get_sync_client(url=f"http://127.0.0.1:{self.port}", api_key=key)

    def has(self, pid: int) -> bool:
        return self.process.pid in {one.pid for one in psutil.Process(pid).parents()}

    def stop(self) -> int:
        """As `docker compose stop` does it; the exit code, within the time that the file gives."""
        self.process.send_signal(signal.Signals[self.service["stop_signal"]])
        return self.process.wait(parse_duration(self.service["stop_grace_period"]).total_seconds())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def containers(tmp_path: Path, ledger: Path, temporal: str) -> Generator[list[Container]]:
    """As many hosts as the file says, with its agents and one more."""
    service = composed(filled())["services"]["host"]
    app = tmp_path / "app"
    shutil.copytree(DEPLOY / "agents", app)
    with (app / "agentvisor.yaml").open("a") as config:
        config.write(f"  steps: {{entrypoint: ./steps.py:graph, env: {{LEDGER: {ledger}}}}}\n")
    (app / "steps.py").write_text(STEPS)
    running = [
        Container(service, app, tmp_path / f"data-{number}", temporal)
        for number in range(int(service["deploy"]["replicas"]))
    ]
    try:
        yield running
    finally:
        for one in running:
            one.process.kill()
            one.process.wait()


def test_two_hosts_and_one_temporal_from_the_compose_file(containers: list[Container], ledger: Path) -> None:
    assert len(containers) == 2
    until(lambda: all(one.is_healthy() for one in containers), seconds=90, pause=0.5)
    first, second = containers

    # What comes with the file works: a question on one host, its answer by the other.
    thread = first.client.threads.create()["thread_id"]
    asked: Any = first.client.runs.wait(thread, "greeter", input={})
    assert asked["__interrupt__"][0]["value"] == "Whom shall I greet?"
    said: Any = second.client.runs.wait(thread, "greeter", command={"resume": "Temporal"})
    assert said["greeting"] == "Hello Temporal"

    # A run that was started on one is read from the other, which goes on with it when its host is stopped.
    thread = first.client.threads.create()["thread_id"]
    run = first.client.runs.create(thread, "steps", input={"wanted": WANTED, "done": []})["run_id"]
    until(lambda: ledger.exists() and "began 3 " in ledger.read_text())
    began = [line.split() for line in ledger.read_text().splitlines()]
    victim = next(one for one in containers if one.has(int(began[-1][2])))
    (other,) = [one for one in containers if one is not victim]
    assert other.client.runs.get(thread, run)["status"] == "running"
    assert victim.stop() == 0
    assert not victim.is_healthy()
    assert other.client.runs.join(thread, run)["done"] == list(range(1, WANTED + 1))  # type: ignore[index]
    did = Counter(tuple(line.split()[:2]) for line in ledger.read_text().splitlines())
    assert did == {(what, str(number)): 1 for number in range(1, WANTED + 1) for what in ("began", "ended")}
    ended: Any = other.client.runs.get(thread, run)
    assert [one["ending"] for one in ended["attempts"]] == ["host_stopped", "completed"]
    assert other.stop() == 0
