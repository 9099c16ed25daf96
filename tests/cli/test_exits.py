"""How commands end: a code for each class of error, and one line instead of a traceback."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import run_command
from tests.support.temporal import free_ports

from agentvisor.cli.exits import EXIT_CODES, exit_code, told
from agentvisor.core.errors import ERRORS, AgentVisorError, NotFound
from agentvisor.host.config import ConfigError

pytestmark = pytest.mark.thorough


def test_every_error_of_the_tree_has_its_code() -> None:
    assert set(EXIT_CODES) == {*ERRORS.values(), ConfigError}


def test_a_class_of_errors_that_is_new_ends_as_a_defect() -> None:
    assert exit_code(AgentVisorError("what")) == 70


def test_an_error_is_one_line_and_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    @told
    def command() -> None:
        raise NotFound("thread t does not exist")

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 3
    assert capsys.readouterr().err == "agentvisor: thread t does not exist\n"


def test_without_the_hosts_packages_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['typer'] = None; from agentvisor.cli.main import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "pip install 'agentvisor[host]'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "arguments", [("threads", "list"), ("threads", "show", "t"), ("threads", "history", "t"), ("run", "plain")]
)
async def test_without_a_host_it_says_what_to_start(nowhere: str, arguments: tuple[str, ...]) -> None:
    ended = await run_command(*arguments, "--url", nowhere)
    assert ended.code == 7
    assert "start one with `agentvisor dev`" in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "given, says",
    [
        ("hello", """a text needs quotes, as in --input '"hello"'"""),
        ("@nowhere.json", "nowhere.json cannot be read"),
        ('{"a": NaN}', "NaN is no JSON number"),
    ],
)
async def test_an_input_that_is_not_json_is_explained(nowhere: str, given: str, says: str) -> None:
    ended = await run_command("run", "plain", "--input", given, "--url", nowhere)
    assert ended.code == 2
    assert says in ended.err


async def test_a_wrong_configuration_is_one_line_with_its_place(tmp_path: object) -> None:
    for command in ("dev", "serve"):
        ended = await run_command(command, "--config", f"{tmp_path}/nothing.yaml")
        assert ended.code == 2
        assert "nothing.yaml does not exist" in ended.err
        assert "Traceback" not in ended.err


async def test_it_knows_its_version_and_its_commands() -> None:
    assert (await run_command("--version")).out.strip() == "0.1.0"
    shown = (await run_command("--help")).out
    assert all(command in shown for command in ("dev", "serve", "run", "threads", "demo", "torture"))


async def test_dev_says_which_port_is_taken_and_which_folder_cannot_be_written_to(tmp_path: Path) -> None:
    web, grpc, temporal, page = free_ports(4)
    (tmp_path / "file").touch()
    (tmp_path / "agentvisor.yaml").write_text(f"grpc: {{port: {grpc}}}")
    ports = ("--port", str(web), "--temporal-port", str(temporal), "--temporal-ui-port", str(page))
    dev = ("dev", "--config", str(tmp_path), *ports, "--data-dir", str(tmp_path / "file" / "data"))
    ended = await run_command(*dev)
    assert ended.code == 7
    assert ended.err.splitlines()[-1].startswith(f"agentvisor: the data folder {tmp_path / 'file' / 'data'} cannot be")
    assert f"no agents are configured in {tmp_path}" in ended.err
    assert "./agent.py:graph" in ended.err
    with socket.create_server(("127.0.0.1", grpc)):
        ended = await run_command(*dev)
    assert ended.code == 7
    assert f"port {grpc} for gRPC is taken" in ended.err
    assert "Traceback" not in ended.err
    same = await run_command(*dev, "--port", str(grpc))
    assert same.code == 2
    assert f"http.port and grpc.port are both {grpc}" in same.err


@pytest.mark.parametrize("arguments", [("threads", "list"), ("run", "plain")])
async def test_a_command_in_a_projects_folder_asks_the_host_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTVISOR_ENDPOINT", raising=False)
    configured, named, given = free_ports(3)
    (tmp_path / "agentvisor.yaml").write_text(f"http: {{port: {configured}}}")
    assert f"no AgentVisor host answers at http://127.0.0.1:{configured} " in (await run_command(*arguments)).err
    endpoint = {"AGENTVISOR_ENDPOINT": f"http://127.0.0.1:{named}"}
    assert f"http://127.0.0.1:{named} " in (await run_command(*arguments, **endpoint)).err
    url = f"http://127.0.0.1:{given}"
    assert f"{url} " in (await run_command(*arguments, "--url", url, **endpoint)).err
    (tmp_path / "agentvisor.yaml").write_text("http: {port: none}")
    wrong = await run_command(*arguments)
    assert (wrong.code, len(wrong.err.splitlines())) == (2, 1)
