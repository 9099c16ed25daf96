"""The command line as a user types it: a process of its own, against a real host."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from tests.host.http.conftest import host, temporal

from agentvisor.host.app import Host

__all__ = ["host", "temporal"]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Command = Callable[..., Awaitable[Ended]]


async def run_command(*arguments: str, stdin: str = "", **environment: str) -> Ended:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agentvisor.cli.main",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest_asyncio.fixture(loop_scope="session")
async def agentvisor(host: Host) -> Command:
    async def command(*arguments: str, stdin: str = "") -> Ended:
        return await run_command(*arguments, stdin=stdin, AGENTVISOR_ENDPOINT=host.url)

    return command


@pytest.fixture
def nowhere() -> str:
    return "http://127.0.0.1:9"
