"""A real agent process with its channel, and this test as its supervisor and host."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping

from tests.client.hosts import Handle, SupervisorDouble

from agentvisor.client.socketpair import CHANNEL_FD
from agentvisor.protocol.v1.guest_pb2 import AgentTask, ToAgent

_START = f"""
import os
from agentvisor.client.socketpair import Channel
channel = Channel(int(os.environ[{CHANNEL_FD!r}]))
channel.receive_task()
channel.start_reader(lambda: None)
"""


def run_agent(program: str, handle: Handle, *, thread_id: str = "own", env: Mapping[str, str] | None = None) -> str:
    """Run a program as an agent process does and return what it printed; its failure fails the test."""
    ours, theirs = socket.socketpair()
    supervisor = SupervisorDouble(ours, handle)
    supervisor.tell(ToAgent(task=AgentTask(thread_id=thread_id, run_id="run", attempt=1)))
    supervisor.thread.start()
    environment = {
        **os.environ,
        "AGENTVISOR_THREAD_ID": thread_id,
        CHANNEL_FD: str(theirs.fileno()),
        "PYTHONWARNINGS": "error",
        **(env or {}),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _START + program],
            env=environment,
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        theirs.close()
        supervisor.thread.join()
        ours.close()
    assert done.returncode == 0, done.stderr
    return done.stdout
