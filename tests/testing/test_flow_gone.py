"""Whatever ends a test session, nothing that it has started is left: no process, no port."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.support.dev_process import await_all_gone
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(120)]

USERS_TESTS = """
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def agentvisor_project():
    return {"sleeps": "agent.py:sleeps"}


def test_it(agentvisor_host):
    agentvisor_host.thread().start("sleeps")
    while not Path("began").exists():
        time.sleep(0.05)
    if Path("freeze").exists():
        agentvisor_host.freeze()
        agentvisor_host.temporal.freeze()
    Path("ready").touch()
    time.sleep(100)
"""

AGENT = """
import time
from pathlib import Path


def sleeps(given):
    Path(__file__).with_name("began").touch()
    time.sleep(100)
"""


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL], ids=lambda one: one.name
)
@pytest.mark.parametrize("frozen", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_is_left_after_the_session(tmp_path: Path, number: signal.Signals, *, frozen: bool) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    if frozen:
        (tmp_path / "freeze").touch()
    session = subprocess.Popen(
        # As from a terminal: a job in the background of a script has SIGINT ignored, and so would its children.
        ["env", "--default-signal=INT", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    family: list[psutil.Process] = []
    try:
        until((tmp_path / "ready").exists, seconds=60)
        family = psutil.Process(session.pid).children(recursive=True)
        # Temporal's keeper and server, the host, the guest's supervisor, its zygote, the agent.
        assert len(family) >= 6
        session.send_signal(number)
        session.communicate(timeout=60)
        await_all_gone(family)
    finally:
        for one in (*family, session):
            if one.is_running() if isinstance(one, psutil.Process) else one.poll() is None:
                one.kill()
