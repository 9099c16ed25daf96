"""The unit starts a host as it can be started, waits for it as long as it needs, and is understood by systemd."""

import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.deploy.files import BIN, DEPLOY, check_command, check_stop, config_of

from agentvisor.cli.service_manager import READY, notifier
from agentvisor.host.config_units import parse_duration

UNIT = DEPLOY / "systemd" / "agentvisor.service"


def directives() -> Mapping[str, str]:
    lines = [line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    assert len({name for name, _ in lines}) == len(lines)
    return dict(lines)


def test_the_unit_starts_a_host_and_gives_it_the_time_to_end(tmp_path: Path) -> None:
    said = directives()
    program, *arguments = said["ExecStart"].split()
    assert Path(program).name == "agentvisor"
    check_command(arguments)
    given = dict(one.split("=", 1) for one in said["Environment"].split())
    ours = {name: value for name, value in given.items() if name.startswith("AGENTVISOR_")}
    config = config_of(ours, tmp_path)
    assert config.dev.data_dir == Path("/var/lib") / said["StateDirectory"]
    check_stop(parse_duration(said["TimeoutStopSec"]).total_seconds(), config)
    # A host that is warm says so; it takes a minute at most, whatever its agents import.
    assert said["Type"] == "notify"
    assert parse_duration(said["TimeoutStartSec"]).total_seconds() > 60
    # The guests are the host's to end, in order; what it leaves is killed with it.
    assert said["KillMode"] == "mixed"


@pytest.mark.system("systemd-analyze")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # It looks for the program.
    unit.write_text(UNIT.read_text().replace("/opt/agentvisor/bin/", f"{BIN}/"))
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("KillMode=", "KilMode="))
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "KilMode" in checked.stderr


@pytest.mark.parametrize("begins", ["/", "@"])
def test_the_service_manager_is_told_by_its_socket(begins: str) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        place = f"{folder}/notify"[1:]
        manager.bind(f"{begins}{place}".replace("@", "\0"))
        manager.settimeout(5)
        notify = notifier({"NOTIFY_SOCKET": f"{begins}{place}"})
        notify(READY)
        assert manager.recv(100) == b"READY=1"


def test_who_is_started_by_no_service_manager_tells_none() -> None:
    for environment in ({}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}, {"NOTIFY_SOCKET": "/not/there"}):
        notifier(environment)(READY)
