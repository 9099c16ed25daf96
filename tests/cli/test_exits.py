"""How commands end: a code for each class of error, and one line instead of a traceback."""

import subprocess
import sys

import pytest
from tests.cli.conftest import run_command

from agentvisor.cli.exits import EXIT_CODES, exit_code, told
from agentvisor.core.errors import ERRORS, AgentVisorError, NotFound
from agentvisor.host.config import ConfigError


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
    assert all(command in shown for command in ("dev", "serve", "run", "threads", "demo"))
