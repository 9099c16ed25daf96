"""The servers that tests use answer, and do not outlive the test process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from temporalio.client import Client
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

pytestmark = pytest.mark.flow

HOLDER = """
import asyncio, sys
from pathlib import Path
from tests.support.temporal import TemporalProcess
server = TemporalProcess(Path(sys.argv[1]))
asyncio.run(server.start())
print(server.pid, flush=True)
sys.stdin.read()
"""


async def test_a_killed_server_starts_again_with_what_it_held(temporal_process: TemporalProcess) -> None:
    client = await Client.connect(temporal_process.address)
    await client.start_workflow("W", id="kept", task_queue="q")
    temporal_process.kill()
    await temporal_process.start()
    assert (await client.get_workflow_handle("kept").describe()).id == "kept"


async def test_the_server_goes_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(tmp_path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    pid = int(await holder.stdout.readline())
    assert psutil.pid_exists(pid)
    holder.kill()
    await holder.wait()
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
