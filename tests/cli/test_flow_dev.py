"""`agentvisor dev`: ready when it says so, clear when it cannot, and a run that is followed outlives its host."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import Ended, run_command
from tests.host.http.conftest import config_in
from tests.support.temporal import TemporalProcess, free_ports
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="session")]


async def dev(folder: Path, temporal: TemporalProcess, port: int) -> asyncio.subprocess.Process:
    """A host that has said that it is ready."""
    command = [sys.executable, "-m", "agentvisor.cli.main", "dev", "--no-reload", "--config", str(folder)]
    command += ["--port", str(port), "--temporal-address", temporal.address]
    with (folder / "host.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=log, env={**os.environ, **SOON}
        )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        line = (await process.stdout.readline()).decode()
    assert line == f"AgentVisor ready at http://127.0.0.1:{port}\n"
    return process


SOON = {
    "AGENTVISOR_TEMPORAL_TASK_QUEUE": "dev",
    "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "2s",
    "AGENTVISOR_TEMPORAL_IDLE_HEARTBEAT": "500ms",
    "AGENTVISOR_TEMPORAL_RUN_RESTART_INITIAL_BACKOFF": "100ms",
}
"""The loss of a host is seen within seconds."""


async def test_a_port_that_is_taken_is_said_with_how_to_choose_another(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    config_in(tmp_path)
    taken = int(temporal.address.rpartition(":")[2])
    ended = await run_command(
        "dev", "--config", str(tmp_path), "--port", str(taken), "--temporal-address", temporal.address
    )
    assert ended.code == 7
    assert f"port {taken} for HTTP is taken" in ended.err
    assert "--port, AGENTVISOR_HTTP_PORT or http.port" in ended.err
    assert "Traceback" not in ended.err


async def answered(port: int, gate: Path) -> asyncio.Task[Ended]:
    """A terminal that has given an answer, and waits for what comes of it."""
    url = f"http://127.0.0.1:{port}"
    given = {"assistant_id": "asking_at_a_gate", "input": {"gate": str(gate)}, "if_not_exists": "create"}
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        assert (await http.post("/threads/asked/runs/wait", json=given)).is_success
    waiting = asyncio.create_task(run_command("interrupts", "answer", "asked", '"yes"', "--wait", "--url", url))
    await until(gate.with_suffix(".started").exists)
    return waiting


async def tailing(url: str) -> asyncio.subprocess.Process:
    """A terminal that follows the run, and has begun to."""
    command = (sys.executable, "-m", "agentvisor.cli.main", "runs", "tail", "followed", "--from-start", "--json")
    process = await asyncio.create_subprocess_exec(*command, "--url", url, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert b'"metadata"' in await process.stdout.readline()
    return process


@asynccontextmanager
async def gateway(port: int) -> AsyncGenerator[str]:
    """A proxy before the host, as load balancers are: where none listens it answers 502 itself."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with AsyncExitStack() as stack:
            stack.callback(writer.close)
            try:
                answers, asks = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
            stack.callback(asks.close)
            both = [asyncio.create_task(_copied(reader, asks)), asyncio.create_task(_copied(answers, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def test_a_run_that_is_followed_goes_on_when_its_host_is_killed_and_another_starts(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    config_in(tmp_path)
    [port] = free_ports(1)
    gate = tmp_path / "gate"
    host = await dev(tmp_path, temporal, port)
    try:
        following = asyncio.create_task(
            run_command("run", "waiting", "--thread", "followed", "--input", f'{{"gate": "{gate}"}}',
                        "--url", f"http://127.0.0.1:{port}")
        )  # fmt: skip
        await until(gate.with_suffix(".started").exists)
        answering = await answered(port, tmp_path / "other")
        async with gateway(port) as url:
            tail = await tailing(url)
            host.send_signal(signal.SIGKILL)
            await host.wait()
            host = await dev(tmp_path, temporal, port)
            gate.touch()
            (tmp_path / "other").touch()
            told, _ = await asyncio.wait_for(tail.communicate(), 60)
        assert tail.returncode == 0
        assert '"log": ["waited"]' in told.decode()
        ended = await asyncio.wait_for(following, 60)
        assert (ended.code, ended.err) == (0, "")
        assert 'wait {"log": ["waited"]}' in ended.out
        assert "attempt 2" in ended.out
        ended = await asyncio.wait_for(answering, 60)
        assert (ended.code, ended.err) == (0, "")
        assert "answer yes" in ended.out
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            [run] = (await http.get("/threads/followed/runs")).json()
        assert [one["ending"] for one in run["attempts"]] == ["host_gone", "completed"]
    finally:
        host.send_signal(signal.SIGTERM)
        assert await host.wait() == 0
