"""What a host says to those that watch over it: it lives whatever happens, and is ready while it can do its work."""

import socket
import subprocess
import sys
import tempfile

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread
from tests.flow.serving import NEVER, seconds_to_end
from tests.support.host_process import HostProcess
from tests.support.temporal import TemporalProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

PROBES = ("/livez", "/readyz", "/ok", "/ok?check_db=1")


def host_of(project: Project, **environment: str) -> HostProcess:
    project.names = {"graph": "victims.py:make"}
    return project.new_host(NEVER | environment, command="serve", FOLDER=str(project.folder)).start()


def said(host: HostProcess) -> dict[str, int]:
    return {path: httpx.get(f"{host.url}{path}").status_code for path in PROBES}


def probed(host: HostProcess, path: str = "/readyz") -> subprocess.CompletedProcess[str]:
    """As a container's health check does it."""
    command = [sys.executable, "-m", "agentvisor.cli.probe", f"http://127.0.0.1:{host.port}{path}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def until_logged(host: HostProcess, event: str, times: int) -> None:
    until(lambda: host.log.read_text().count(event) == times)


def test_a_host_without_temporal_lives_and_is_not_ready_until_it_is_back(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    host = host_of(own_project)
    assert said(host) == dict.fromkeys(PROBES, 200)
    assert probed(host).returncode == 0
    for times, lose, find in (
        (1, temporal_process.kill, temporal_process.launch),
        (2, temporal_process.freeze, temporal_process.thaw),
    ):
        lose()
        until(lambda: httpx.get(f"{host.url}/readyz").json() == {"ok": False, "reason": "temporal_unreachable"})
        assert said(host) == {"/livez": 200, "/readyz": 503, "/ok": 200, "/ok?check_db=1": 503}
        assert "temporal_unreachable" in probed(host).stderr
        assert [probed(host, path).returncode for path in ("/ok", "/ok?check_db=1")] == [0, 1]
        until_logged(host, "temporal_unreachable", times)
        find()
        until(lambda: said(host) == dict.fromkeys(PROBES, 200), seconds=60)
        until_logged(host, "temporal_reachable", times)


def test_a_host_that_drains_lives_and_is_not_ready_and_the_service_manager_knows(zygote_project: Project) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{folder}/notify")
        manager.settimeout(20)
        host = host_of(zygote_project, NOTIFY_SOCKET=f"{folder}/notify")
        assert manager.recv(200).decode() == f"READY=1\nSTATUS=Ready at {host.url}"
        thread = VictimThread(zygote_project, host)
        thread.graph("tools", {"wanted": 2, "gates": [1]})
        thread.until_it("began 1")
        host.tell()
        assert manager.recv(200).decode().splitlines()[0] == "STOPPING=1"
        # It waits for the tool, and answers meanwhile.
        until(lambda: httpx.get(f"{host.url}/readyz").json() == {"ok": False, "reason": "stopping"})
        until(lambda: said(host) == {"/livez": 200, "/readyz": 503, "/ok": 503, "/ok?check_db=1": 503})
        assert probed(host, "/livez").returncode == 0
        assert probed(host).returncode == 1
        thread.tell("gate 1")
        seconds_to_end(host)
        ended = probed(host, "/livez")
        assert (ended.returncode, "does not answer" in ended.stderr) == (1, True)


@pytest.mark.parametrize("url", ["localhost:8090", "https://localhost:8090/readyz", "/readyz"])
def test_what_is_no_address_of_a_host_is_said_to_be_none(url: str) -> None:
    command = [sys.executable, "-m", "agentvisor.cli.probe", url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, "usage" in ended.stderr) == (1, True)
