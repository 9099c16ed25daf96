"""The LangGraph server as `langgraph dev` starts it, from an environment of its own: the oracle."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.support.host_process import HostProcess
from tests.support.temporal import free_ports

from agentvisor.host import leash

PROJECT = Path(__file__).parent / "project"
_PROGRAM = Path(__file__).parents[2] / ".venv-oracle" / "bin" / "langgraph"
_READY_SECONDS = 60.0
_ENVIRONMENT = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}


def project_in(folder: Path) -> Path:
    """A copy of the project: servers leave files where they run."""
    return Path(shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__", ".langgraph_api")))


@contextmanager
def oracle(folder: Path) -> Generator[str]:
    """A running LangGraph server; its address."""
    if not _PROGRAM.exists():
        raise FileNotFoundError(
            f"{_PROGRAM} is not there: make setup installs the LangGraph server that we compare with"
        )
    project = project_in(folder / "project")
    [port] = free_ports(1)
    log = folder / "oracle.log"
    command = [
        *(str(_PROGRAM), "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)),
        *("--n-jobs-per-worker", "10"),
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command],
            cwd=project,
            env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield _address(process, log, port)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path, port: int) -> str:
    deadline = time.monotonic() + _READY_SECONDS
    url = f"http://127.0.0.1:{port}"
    while time.monotonic() < deadline and process.poll() is None:
        # It takes another port where the one that it was given is taken meanwhile, and says which.
        said = re.search(r"API: \S*?(http://127\.0\.0\.1:\d+)", log.read_text(errors="replace"))
        url = said[1] if said else url
        try:
            if httpx.get(f"{url}/ok", timeout=5).is_success:
                return url
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"the LangGraph server does not start:\n{log.read_text(errors='replace')[-4000:]}")


@contextmanager
def agentvisor(folder: Path, temporal: str) -> Generator[str]:
    """A running host of ours with the same project; its address."""
    host = HostProcess(project_in(folder / "project"), temporal, _ENVIRONMENT)
    try:
        yield host.start().url
    finally:
        host.stop()
