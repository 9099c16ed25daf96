"""A host that is told to stop ends, also where something never lets go."""

import signal
import subprocess
import sys

import pytest

HOST = """
import asyncio, sys
from agentvisor.host.drain import Drain
from agentvisor.host.until_signalled import until_signalled

async def work():
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        if sys.argv[1] == "stuck":
            await asyncio.Event().wait()

asyncio.run(until_signalled(work(), Drain(0.2), 0.2))
"""


@pytest.mark.parametrize("how, code", [("stuck", 1), ("in order", 0)])
def test_a_host_whose_end_takes_too_long_ends_all_the_same(how: str, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", HOST, how], stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
            host.send_signal(signal.SIGTERM)
            rest, _ = host.communicate(timeout=30)
        finally:
            host.kill()
    assert host.returncode == code
    assert ("host_stop_cut_short" in rest) is (how == "stuck")
