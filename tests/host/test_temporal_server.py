"""The embedded Temporal server starts, answers, comes back with its data, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowUpdateStage
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.service import RPCError

from agentvisor.core.errors import Unavailable
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.temporal_server_ready import SEARCH_ATTRIBUTES, register_search_attributes

pytestmark = pytest.mark.flow

METADATA = SearchAttributeKey.for_keyword_list("AgentVisorMetadata")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def server(folder: Path, port: int | None = None, ui_port: int | None = None) -> EmbeddedTemporal:
    first, second = free_ports(2)
    return EmbeddedTemporal(data_dir=folder, port=port or first, ui_port=ui_port or second)


def is_alive(pid: int) -> bool:
    # Where pid 1 reaps late, a zombie is as dead as it gets.
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def until(condition: Callable[[], bool], *, seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_inside_the_server_answers_its_ui_answers_and_threads_can_be_searched(tmp_path: Path) -> None:
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        attributes = TypedSearchAttributes([SearchAttributePair(METADATA, ["team=a", "tier=1"])])
        await client.start_workflow("W", id="thread-1", task_queue="q", search_attributes=attributes)
        async with asyncio.timeout(15):
            while not [w async for w in client.list_workflows("AgentVisorMetadata = 'tier=1'")]:
                await asyncio.sleep(0.01)
        async with httpx.AsyncClient() as http:
            page = await http.get(temporal.ui_url, follow_redirects=True)
        pid = temporal.pid
        assert page.status_code == 200
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_registering_search_attributes_again_changes_nothing(tmp_path: Path) -> None:
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        await register_search_attributes(client)
        listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    assert SEARCH_ATTRIBUTES.items() <= dict(listed.custom_attributes).items()


async def test_update_with_start_is_on(tmp_path: Path) -> None:
    # The door that every run of a thread goes through. Without a worker the update is admitted and waits.
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        start = WithStartWorkflowOperation(
            "W", id="t", task_queue="q", id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING
        )
        update = asyncio.create_task(
            client.start_update_with_start_workflow(
                "start_run", start_workflow_operation=start, wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
        )
        async with asyncio.timeout(15):
            while True:
                try:
                    described = await client.get_workflow_handle("t").describe()
                    break
                except RPCError:
                    assert not update.done(), update.exception()
                    await asyncio.sleep(0.01)
        update.cancel()
        await asyncio.gather(update, return_exceptions=True)
    assert described.id == "t"


async def test_killed_it_comes_back_on_the_same_ports_with_its_data(tmp_path: Path) -> None:
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        await client.start_workflow("W", id="thread-1", task_queue="q")
        first = temporal.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: temporal.restarts == 1)
        described = await client.get_workflow_handle("thread-1").describe()
        assert described.id == "thread-1"
        assert temporal.pid != first


async def test_stopped_and_started_later_it_has_its_data(tmp_path: Path) -> None:
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        await client.start_workflow("W", id="thread-1", task_queue="q")
    async with server(tmp_path) as temporal:
        client = await Client.connect(temporal.address)
        described = await client.get_workflow_handle("thread-1").describe()
    assert described.id == "thread-1"


@pytest.mark.parametrize("which", ["port", "ui_port"])
async def test_a_taken_port_is_an_error_that_says_who_has_it_and_how_to_choose_another(
    tmp_path: Path, which: str
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(Unavailable) as refused:
            async with server(tmp_path, **{which: number}):
                pass
    message = str(refused.value)
    option = {"port": "--temporal-port", "ui_port": "--temporal-ui-port"}[which]
    setting = {"port": "dev.temporal_port", "ui_port": "dev.temporal_ui_port"}[which]
    assert f"port {number}" in message
    assert f"process {os.getpid()}" in message
    assert option in message
    assert setting in message


async def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    async with server(tmp_path):
        with pytest.raises(Unavailable, match="--data-dir"):
            async with server(tmp_path):
                pass


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "temporal.db").write_bytes(b"this is no database, and long enough that nobody takes it for one" * 100)
    with pytest.raises(Unavailable, match="not a database"):
        async with server(tmp_path):
            pass


async def test_outside_the_main_thread_it_refuses_because_it_would_die_with_the_thread(tmp_path: Path) -> None:
    async def enter() -> None:
        async with server(tmp_path):
            pass

    with pytest.raises(RuntimeError, match="main thread"):
        await asyncio.to_thread(asyncio.run, enter())


HOST = """
import asyncio, sys
from pathlib import Path
from agentvisor.host.temporal_server import EmbeddedTemporal

async def main(folder, port, ui_port):
    async with EmbeddedTemporal(data_dir=Path(folder), port=int(port), ui_port=int(ui_port)) as temporal:
        print(temporal.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_when_the_host_is_killed_no_server_stays(tmp_path: Path) -> None:
    ports = [str(port) for port in free_ports(2)]
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path), *ports], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert is_alive(pid)
        host.kill()
    await until(lambda: not is_alive(pid), seconds=5)


async def test_ctrl_c_in_the_terminal_leaves_stopping_the_server_to_the_host(tmp_path: Path) -> None:
    async with server(tmp_path) as temporal:
        assert os.getpgid(temporal.pid) != os.getpgid(0)
        assert os.getsid(temporal.pid) != os.getsid(0)


async def test_the_server_sees_no_secret_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTVISOR_HTTP_OPERATOR_KEY", "canary-7f3a")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-7f3a")
    async with server(tmp_path) as temporal:
        environment = Path(f"/proc/{temporal.pid}/environ").read_bytes()
    assert b"canary-7f3a" not in environment
