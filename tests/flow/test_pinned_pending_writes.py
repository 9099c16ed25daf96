"""Whether pending writes are kept is pinned when a thread is created (S6); delta and control writes are kept always."""

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from temporalio.client import Client
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.core.thread import STATE_VERSION
from agentvisor.host.workflow.thread import WORKFLOW
from agentvisor.protocol.v1 import run_pb2, thread_pb2

pytestmark = pytest.mark.flow

OFF = {"AGENTVISOR_TEMPORAL_PENDING_WRITES_ENABLED": "false"}
AGAIN = {"did adds": 1, "did quick": 2, "began slow": 2}
"""What is done where only the task that writes to a delta channel is not done again."""


def killed_in_the_middle(project: Project, host: HostProcess, thread: str, kept: set[str]) -> Counter[str]:
    """Run the super-step, kill the agent while `slow` is at it; what was done in all, once the run has paused.

    `kept`: the tasks whose writes are there when the agent is killed.
    """
    client = client_of(host)
    before = project.did()
    run = client.runs.create(thread, "pins", input={"items": ["given"]}, if_not_exists="create")
    until(lambda: project.did()["began slow"] > before["began slow"])
    until(lambda: {task["name"] for task in tasks(host, thread) if task.get("result")} == kept)
    os.kill(project.pid_of("began slow"), signal.SIGKILL)
    until(lambda: project.did()["began slow"] == before["began slow"] + 2)
    project.gate.touch()
    client.runs.join(thread, run["run_id"])
    project.gate.unlink()
    values = client.runs.wait(thread, "pins", command={"resume": "yes"})
    times = before["began slow"] // 2 + 1
    assert Counter(values["told"]) == {"added": times, "given": times, "slowly": times, "yes": 1}
    return project.did() - before


def tasks(host: HostProcess, thread: str) -> Any:
    return client_of(host).threads.get_state(thread)["tasks"]


@pytest.fixture
def pins(tmp_path: Path, temporal: str) -> Generator[Project]:
    project = Project(tmp_path, temporal, "zygote", {"pins": "pins.py:graph"})
    try:
        yield project
    finally:
        for host in project.hosts:
            host.stop()


def restarted(project: Project, host: HostProcess, environment: dict[str, str]) -> HostProcess:
    host.stop()
    return project.host(environment)


def test_a_thread_that_has_them_on_keeps_them_under_a_host_that_has_them_off(pins: Project) -> None:
    host = pins.host()
    thread = client_of(host).threads.create()["thread_id"]
    host = restarted(pins, host, OFF)
    did = killed_in_the_middle(pins, host, thread, kept={"adds", "quick"})
    assert did == {"did adds": 1, "did quick": 1, "began slow": 2}


@pytest.mark.slow
def test_a_thread_that_has_them_off_keeps_delta_and_control_writes_for_its_whole_life(pins: Project) -> None:
    host = pins.host(OFF)
    thread = str(uuid4())
    assert killed_in_the_middle(pins, host, thread, kept={"adds"}) == AGAIN
    host = restarted(pins, host, {"AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "100"})
    assert killed_in_the_middle(pins, host, thread, kept={"adds"}) == AGAIN
    for number in range(40):
        client_of(host).threads.update(thread, metadata={"number": number})
    until(lambda: httpx.get(f"{host.url}/threads/{thread}/storage").json()["compactions"] > 0)
    assert killed_in_the_middle(pins, host, thread, kept={"adds"}) == AGAIN


def test_a_thread_from_before_the_setting_has_them_off(pins: Project, temporal: str) -> None:
    host = pins.host()
    thread = str(uuid4())
    queue = re.search(r"task_queue: (\S+)", pins._settings)
    assert queue is not None
    asyncio.run(start_old_thread(temporal, queue[1], thread))
    assert killed_in_the_middle(pins, host, thread, kept={"adds"}) == AGAIN


async def start_old_thread(temporal: str, queue: str, thread: str) -> None:
    """As a version without the setting has created it: nothing is pinned."""
    now = int(time.time() * 1000)
    state = thread_pb2.Thread(
        version=STATE_VERSION,
        thread_id=thread,
        created_at_ms=now,
        updated_at_ms=now,
        config=run_pb2.PinnedConfig(),
        settings=run_pb2.ThreadSettings(compact_events=8000, compact_bytes=16 << 20, state_bytes=1_800_000),
    )
    client = await Client.connect(temporal)
    await client.start_workflow(WORKFLOW, state.SerializeToString(), id=thread, task_queue=queue)
