"""`agentvisor dev`: ready when it says so, clear when it cannot, and a run that is followed outlives its host."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import run_command
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


async def test_a_run_that_is_followed_goes_on_when_its_host_is_killed_and_another_starts(
    temporal: TemporalProcess, tmp_path: Path
) -> None:
    config_in(tmp_path)
    [port] = free_ports(1)
    gate = tmp_path / "gate"
    host = await dev(tmp_path, temporal, port)
    following = asyncio.create_task(
        run_command("run", "waiting", "--thread", "followed", "--input", f'{{"gate": "{gate}"}}',
                    "--url", f"http://127.0.0.1:{port}")
    )  # fmt: skip
    await until(gate.with_suffix(".started").exists)
    host.send_signal(signal.SIGKILL)
    await host.wait()
    host = await dev(tmp_path, temporal, port)
    try:
        gate.touch()
        ended = await asyncio.wait_for(following, 60)
        assert (ended.code, ended.err) == (0, "")
        assert 'wait {"log": ["waited"]}' in ended.out
        assert "attempt 2" in ended.out
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            [run] = (await http.get("/threads/followed/runs")).json()
        assert [one["ending"] for one in run["attempts"]] == ["host_gone", "completed"]
    finally:
        host.send_signal(signal.SIGTERM)
        assert await host.wait() == 0
