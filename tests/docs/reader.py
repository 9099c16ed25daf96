"""A reader who does what a page says, block by block: writes its files, types its commands, compares the answers."""

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml
from fastapi.routing import APIRoute
from tests.docs.blocks import ROOT, Block
from tests.support.temporal import free_ports
from tests.support.waiting_sync import until

from agentvisor.host.config import load_config
from agentvisor.host.http import meta

BIN = Path(sys.executable).parent
PAGES_PORTS = {
    "8090": "AGENTVISOR_HTTP_PORT",
    "7233": "AGENTVISOR_DEV_TEMPORAL_PORT",
    "8233": "AGENTVISOR_DEV_TEMPORAL_UI_PORT",
    "8091": "",
}
"""The ports that our pages name, and the variables by which the reader's hosts get others; or by their options."""

PATIENCE = {"AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "2s", "AGENTVISOR_TEMPORAL_IDLE_HEARTBEAT": "500ms"}
END = "@@@"
STOP_SECONDS = 20
"""What a host may take to end after its drain, as the page on deploys says."""


@contextmanager
def reading(folder: Path) -> Generator["Reader"]:
    """A reader in a folder of the page's own; its hosts' databases, which are large, go with it."""
    folder.mkdir()
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.close()
        shutil.rmtree(folder / ".agentvisor", ignore_errors=True)


class Reader:
    """Has one folder and one shell for a page. Close it, and nothing of it runs any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(PAGES_PORTS, map(str, free_ports(len(PAGES_PORTS))), strict=True))
        self.printed = ""
        """What the last commands printed on standard output."""
        self.errors = folder.parent / f"{folder.name}.errors"
        environment = {variable: self.ports[port] for port, variable in PAGES_PORTS.items() if variable}
        self._environment = {
            **os.environ,
            **environment,
            **PATIENCE,
            "AGENTVISOR_ENDPOINT": f"http://127.0.0.1:{self.ports['8090']}",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        with self.errors.open("w") as errors:
            self._shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-o", "pipefail"],
                cwd=folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def close(self) -> None:
        family = psutil.Process(self._shell.pid).children(recursive=True)
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        self._shell.kill()
        self._shell.communicate()

    def do(self, block: Block) -> None:
        """Follow one block. `AssertionError` where it is not as the page says, or no rule says how to follow it."""
        assert block.language in RULES, f"{block}: no rule says how to run this; rules: {', '.join(RULES)}"
        RULES[block.language](self, block)

    # --- the rules ---------------------------------------------------------------------------------------------------

    def python(self, block: Block) -> None:
        """A file is written; what is not one is run as a program."""
        compile(block.text, str(block), "exec")
        if block.name:
            (self.folder / block.name).write_text(block.text)
            return
        program = self.folder / "program.py"
        program.write_text(self._here(block.text))
        ran = subprocess.run(
            [sys.executable, program.name],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert ran.returncode == 0, f"{block}:\n{ran.stdout}\n{ran.stderr}"
        self.printed = ran.stdout

    def settings(self, block: Block) -> None:
        """A configuration is written and loaded, in the form of its file."""
        if block.name == "deployment.yaml":
            _check_deployment(block)
            return
        if block.name == "prometheus.yml":
            _check_scraping(block)
            return
        assert block.name in ("agentvisor.yaml", "langgraph.json"), f"{block}: which file is it?"
        (self.folder / block.name).write_text(block.text)
        for entrypoint in _files_in(block):
            # A page that shows a configuration alone leaves the agent to the reader.
            (self.folder / entrypoint).touch()
        load_config(self.folder / block.name, environ={})

    def bash(self, block: Block) -> None:
        """Commands are typed; installing and make, which the tests of the reader's machine do, are checked as text."""
        lines = block.text.replace("\\\n", " ").splitlines()
        for line in lines:
            if line.startswith("pip install "):
                _check_extras(block, line)
            elif line.startswith("make "):
                subprocess.run(
                    ["make", "-n", "-C", ROOT, shlex.split(line, comments=True)[1]],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
        typed = [self._here(line) for line in lines if not line.startswith(("pip install ", "make "))]
        if any("kill -9" in line for line in typed):
            self._type(typed, block)
            # People take longer than the kernel to end what was started.
            until(lambda: not any(_is_taken(port) for port in self.ports.values()))
        else:
            if any(line.startswith("agentvisor dev") for line in typed):
                typed.append('until curl -sf "$AGENTVISOR_ENDPOINT/ok" >/dev/null; do sleep 0.1; done')
            self._type(typed, block)

    def text(self, block: Block) -> None:
        """What the commands above print, "..." for anything; or a picture, whose files are there."""
        if block.name == "picture":
            for file in re.findall(r"[\w/]+\.(?:py|proto)", block.text):
                assert (ROOT / "src/agentvisor" / file).exists(), f"{block}: there is no {file}"
            return
        shown, printed = _even(block.text), _even(self.printed)
        wanted = "".join(".*?" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", shown))
        assert re.fullmatch(wanted, printed, re.DOTALL), f"{block}: printed was\n{self.printed}"

    # --- the shell ---------------------------------------------------------------------------------------------------

    def _type(self, lines: list[str], block: Block) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        script = self.folder.parent / f"{self.folder.name}.sh"
        script.write_text("\n".join(lines) + "\n")
        self._shell.stdin.write(f"source {shlex.quote(str(script))}; echo {END} $?\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        # It answers a moment before it says that it is ready: that line belongs here, and not to what is typed next.
        says_ready = any(re.fullmatch(r"agentvisor dev( --?[\w-]+)*( 2> ?\S+)? &", line) for line in lines)
        code = ""
        for line in self._shell.stdout:
            text, found, ended = line.partition(END)
            printed.append(text)
            code = ended if found else code
            says_ready = says_ready and "AgentVisor ready at" not in text
            if code and (int(code) or not says_ready):
                break
        else:
            raise AssertionError(f"{block}: the shell has ended\n{self.errors.read_text()[-3000:]}")
        self.printed = self._there("".join(printed))
        assert int(code) == 0, f"{block}: exit code {code}\n{self.printed}\n{self.errors.read_text()[-3000:]}"

    def _here(self, text: str) -> str:
        for theirs, ours in self.ports.items():
            text = re.sub(rf"\b(localhost|127\.0\.0\.1):{theirs}\b", rf"127.0.0.1:{ours}", text)
            text = re.sub(rf"--port {theirs}\b", f"--port {ours}", text)
        return text

    def _there(self, text: str) -> str:
        for theirs, ours in self.ports.items():
            text = text.replace(f"127.0.0.1:{ours}", f"127.0.0.1:{theirs}")
        return text


RULES: dict[str, Callable[[Reader, Block], None]] = {
    "python": Reader.python,
    "yaml": Reader.settings,
    "json": Reader.settings,
    "bash": Reader.bash,
    "text": Reader.text,
}
"""How to follow a block, by its language."""


def _files_in(block: Block) -> list[str]:
    named = re.findall(r"\./(\w+\.py):", block.text)
    agents = yaml.safe_load(block.text)
    assert isinstance(agents, dict), f"{block}: not a table"
    return named


def _check_scraping(block: Block) -> None:
    """Prometheus' own words: how our hosts are scraped, with a key, and a job of the name that the alerts know."""
    told = yaml.safe_load(block.text)
    assert told.keys() <= {"scrape_configs", "rule_files", "alerting", "global"}, f"{block}: {told.keys()}"
    (job,) = told["scrape_configs"]
    assert 'job="agentvisor"' in (ROOT / "deploy/monitoring/alerts.yaml").read_text()
    assert job["job_name"] == "agentvisor"
    assert job["authorization"].keys() == {"credentials_file"}
    assert all(one["targets"] for one in job["static_configs"])


def _check_extras(block: Block, line: str) -> None:
    wanted = re.search(r"'(?:agentvisor|\.)\[([\w,-]+)\]'", line)
    assert wanted, f"{block}: {line}"
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(wanted[1].split(",")) <= known.keys(), f"{block}: {line}"


def _check_deployment(block: Block) -> None:
    """What a cluster is told of our hosts: it starts one, asks a route of ours, sets variables of ours, and waits."""
    spec = yaml.safe_load(block.text)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    program, command, *options = container["command"]
    assert program == "agentvisor", f"{block}: {program}"
    helped = subprocess.run([BIN / program, command, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(one in helped for one in options if one.startswith("--")), f"{block}: {options}"
    given = {one["name"]: one.get("value", "x" * 40) for one in container["env"]}
    config = load_config(None, environ=given)
    least = config.temporal.drain_timeout.total_seconds() + STOP_SECONDS
    assert spec["terminationGracePeriodSeconds"] > least, f"{block}: shorter than the drain and {STOP_SECONDS} s"
    probe = container["readinessProbe"]["httpGet"]
    assert probe["path"] in {route.path for route in meta.router.routes if isinstance(route, APIRoute)}, f"{block}"
    assert str(probe["port"]) == options[options.index("--port") + 1], f"{block}"


def _even(text: str) -> str:
    """Without the spaces that only line columns up."""
    return re.sub(r" *\n *", "\n", re.sub(r" +", " ", text)).strip()


def _is_taken(port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0
