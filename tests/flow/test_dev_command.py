"""`agentvisor dev`: one line when it is ready, clear errors when it cannot be, nothing left when it ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_sync_client
from tests.support.dev_process import AGENTVISOR, DevProcess, await_all_gone
from tests.support.waiting_sync import until

from agentvisor import __version__

pytestmark = pytest.mark.flow

AGENT = """\
import os, time
from pathlib import Path

VERSION = "first"

def agent(given):
    gate = Path(given["gate"])
    gate.with_suffix(".began").touch()
    while not gate.exists():
        time.sleep(0.02)
    return {"version": VERSION, "pid": os.getpid()}
"""
CONFIG = """\
agents:
  agent: {entrypoint: "./agent.py:agent", framework: function}
guest: {stop_grace: 200ms}
"""
OF_ANOTHER_CLUSTER = {
    "TEMPORAL_ADDRESS": "127.0.0.1:9",
    "TEMPORAL_NAMESPACE": "elsewhere",
    "TEMPORAL_API_KEY": "of-another-cluster",
    "TEMPORAL_TLS": "true",
    "TEMPORAL_PROFILE": "no-such-profile",
    "TEMPORAL_CONFIG_FILE": "/no/such/file",
}
"""What a developer's shell may be full of; `agentvisor dev` has a Temporal of its own."""
PORTS = ("--port", "--temporal-port", "--temporal-ui-port")


def project(folder: Path, config: str = CONFIG) -> Path:
    (folder / "agent.py").write_text(AGENT)
    (folder / "agentvisor.yaml").write_text(config)
    return folder


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Generator[DevProcess]:
    """One that runs, for the tests that only use it."""
    dev = DevProcess(project(tmp_path_factory.mktemp("dev")), environment=OF_ANOTHER_CLUSTER).start()
    try:
        yield dev
    finally:
        dev.end()


def run_now(dev: DevProcess, gate: Path, thread: str | None = None) -> dict[str, object]:
    gate.touch()
    client = get_sync_client(url=dev.url)
    thread = thread or str(uuid4())
    result = client.runs.wait(thread, "agent", input={"gate": str(gate)}, if_not_exists="create")
    assert isinstance(result, dict)
    return result


def command(*words: str, url: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AGENTVISOR, *words, "--url", url],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- from the beginning to the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_says_when_it_is_ready_takes_runs_and_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    dev = DevProcess(project(tmp_path)).start()
    try:
        assert dev.printed == f"AgentVisor ready at {dev.url}\n"
        client = get_sync_client(url=dev.url)
        # Accepted at once, and alive when the end comes.
        run = client.runs.create("living", "agent", input={"gate": str(tmp_path / "never")}, if_not_exists="create")
        until((tmp_path / "never.began").exists)
        assert httpx.get(f"http://127.0.0.1:{dev.ui_port}/").status_code == 200
        family = dev.family()
        assert len(family) >= 4, "itself, Temporal, the guest's supervisor, its zygote, the agent"
        code = dev.end(number)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        assert dev.printed == f"AgentVisor ready at {dev.url}\n"
        await_all_gone(family)
        if number != signal.SIGTERM:
            return
        # Started again, all is there: also the run, which goes on.
        (tmp_path / "never").touch()
        dev = DevProcess(tmp_path).start()
        client = get_sync_client(url=dev.url)
        assert client.runs.join("living", run["run_id"])["version"] == "first"
        assert [one["run_id"] for one in client.runs.list("living")] == [run["run_id"]]
    finally:
        dev.end(signal.SIGKILL)


# --- what keeps it from starting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", PORTS)
def test_a_taken_port_is_named_with_its_option_and_nothing_is_left_running(option: str, tmp_path: Path) -> None:
    dev = DevProcess(project(tmp_path))
    number = dict(zip(PORTS, (dev.port, dev.temporal_port, dev.ui_port), strict=True))[option]
    with contextlib.closing(socket.create_server(("127.0.0.1", number))):
        code, said = dev.fail()
    assert code == 7
    assert dev.end() == 7
    assert dev.printed == ""
    (line,) = [line for line in said.splitlines() if line.startswith("agentvisor: ")]
    assert f"port {number}" in line
    assert option in line
    assert "Traceback" not in said
    assert all(is_free(port) for port in (dev.port, dev.temporal_port, dev.ui_port))


def test_a_folder_that_another_one_uses_is_refused(dev: DevProcess) -> None:
    code, said = _fails(dev.folder, "another.log")
    assert code == 7
    assert "another AgentVisor uses the data folder" in said
    assert httpx.get(f"{dev.url}/ok").status_code == 200


@pytest.mark.parametrize(
    "config, words",
    [
        (
            "temporal: {max_checkpoint_histroy: 3}",
            ["temporal.max_checkpoint_histroy", "temporal.max_checkpoint_history"],
        ),
        ("agents: {a: ./not_there.py:agent}", ["agents.a.entrypoint", "not_there.py"]),
        ("agents: {a: {entrypoint: ./agent.py:agent, framwork: function}}", ["agents.a.framwork", "framework"]),
        ("http: {host: 0.0.0.0}", ["http.operator_key"]),
        ("agents: [", ["agentvisor.yaml", "YAML"]),
    ],
)
def test_a_wrong_configuration_is_told_in_one_message(config: str, words: list[str], tmp_path: Path) -> None:
    code, said = DevProcess(project(tmp_path, config)).fail()
    assert code == 2
    assert said.startswith("agentvisor: ")
    assert "Traceback" not in said
    assert all(word in said for word in words), said
    assert not (tmp_path / ".agentvisor").exists()


def test_a_variable_that_names_no_setting_is_refused_with_the_nearest(tmp_path: Path) -> None:
    variables = {"AGENTVISOR_TEMPORAL_MAX_RUN_HISTROY": "3"}
    code, said = DevProcess(project(tmp_path), environment=variables).fail()
    assert code == 2
    assert "did you mean AGENTVISOR_TEMPORAL_MAX_RUN_HISTORY?" in said


def test_variables_beat_the_file_and_options_beat_variables(tmp_path: Path) -> None:
    variables = {"AGENTVISOR_HTTP_PORT": "1", "AGENTVISOR_HTTP_OPERATOR_KEY": "secret", "AGENTVISOR_GRPC_PORT": "0"}
    folder = project(tmp_path, f"{CONFIG}http: {{operator_key: from the file}}\n")
    dev = DevProcess(folder, environment=variables).start()
    try:
        assert httpx.get(f"{dev.url}/info").status_code == 401
        assert httpx.get(f"{dev.url}/info", headers={"x-api-key": "from the file"}).status_code == 401
        assert httpx.get(f"{dev.url}/info", headers={"x-api-key": "secret"}).status_code == 200
        told = command("threads", "list", url=dev.url)
        assert told.returncode == 5
        assert "AGENTVISOR_API_KEY" in told.stderr
        assert command("threads", "list", url=dev.url, AGENTVISOR_API_KEY="secret").returncode == 0
        # Ctrl-C ends it as SIGTERM does.
        family = dev.family()
        assert dev.end(signal.SIGINT) == 0
        await_all_gone(family)
    finally:
        dev.end(signal.SIGKILL)


# --- reload ---------------------------------------------------------------------------------------------------------


def test_an_edited_agent_is_used_by_the_next_run_and_the_live_one_goes_on(dev: DevProcess, tmp_path: Path) -> None:
    client = get_sync_client(url=dev.url)
    gate = tmp_path / "slow"
    old = client.runs.create("old", "agent", input={"gate": str(gate)}, if_not_exists="create")
    until(gate.with_suffix(".began").exists)
    (dev.folder / "agent.py").write_text(AGENT.replace('"first"', '"second"'))
    until(lambda: run_now(dev, tmp_path / "gate")["version"] == "second")
    gate.touch()
    assert client.runs.join("old", old["run_id"])["version"] == "first"
    (attempt,) = client.runs.list("old")[0]["attempts"]  # type: ignore[typeddict-item]
    assert attempt["ending"] in (None, "completed")
    # A file that is broken for a moment, as editors leave them, fails that run and no other.
    (dev.folder / "agent.py").write_text("def agent(")
    until(lambda: _fails_to_run(dev, tmp_path / "gate"))
    (dev.folder / "agent.py").write_text(AGENT.replace('"first"', '"third"'))
    until(lambda: not _fails_to_run(dev, tmp_path / "gate"))
    until(lambda: run_now(dev, tmp_path / "gate")["version"] == "third")
    # The configuration is read at the start; who edits it is told.
    (dev.folder / "agentvisor.yaml").write_text(f"{CONFIG}# changed\n")
    until(lambda: "restart agentvisor dev to use it" in dev.errors.read_text())


def _fails_to_run(dev: DevProcess, gate: Path) -> bool:
    gate.touch()
    body = {"assistant_id": "agent", "input": {"gate": str(gate)}}
    return "__error__" in httpx.post(f"{dev.url}/runs/wait", json=body, timeout=30).json()


# --- the other commands against it ------------------------------------------------------------------------------------


def test_run_and_threads_show_what_happens(dev: DevProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    given = json.dumps({"gate": str(gate)})
    ran = command("run", "agent", "--input", given, "--thread", "by-hand", url=dev.url)
    assert ran.returncode == 0, ran.stderr
    listed = command("threads", "list", url=dev.url)
    assert "by-hand" in listed.stdout
    shown = json.loads(command("threads", "show", "by-hand", "--json", url=dev.url).stdout)
    assert shown["status"] == "idle"
    assert shown["runs"][0]["status"] == "success"
    assert command("threads", "history", "by-hand", url=dev.url).returncode == 0


def test_doctor_finds_the_host_that_runs_and_its_temporal(dev: DevProcess) -> None:
    ports = {
        "AGENTVISOR_HTTP_PORT": str(dev.port),
        "AGENTVISOR_DEV_TEMPORAL_PORT": str(dev.temporal_port),
        "AGENTVISOR_DEV_TEMPORAL_UI_PORT": str(dev.ui_port),
    }
    looked = subprocess.run(
        [AGENTVISOR, "doctor", "--config", dev.folder, "--json"],
        env={**os.environ, **ports},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert looked.returncode == 0, looked.stdout + looked.stderr
    found = {one["check"]: one for one in json.loads(looked.stdout)}
    assert {one["verdict"] for one in found.values()} == {"ok"}
    assert found["ports"]["seen"] == f"an AgentVisor host answers at 127.0.0.1:{dev.port}"
    assert f"127.0.0.1:{dev.temporal_port}, the embedded one" in found["connection"]["seen"]
    assert f"127.0.0.1:{dev.port} ({__version__})" in found["hosts"]["seen"]


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _fails(folder: Path, log: str) -> tuple[int, str]:
    dev = DevProcess(folder)
    dev.errors = folder / log
    return dev.fail()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_ends_with_all_it_started_though_its_temporal_hangs(tmp_path: Path) -> None:
    dev = DevProcess(project(tmp_path)).start()
    family = dev.family()
    (server,) = [one for one in family if Path(one.cmdline()[0]).name == "temporal"]
    server.send_signal(signal.SIGSTOP)
    assert dev.end() == 1
    await_all_gone(family)
    assert "host_stop_cut_short" in dev.errors.read_text()
