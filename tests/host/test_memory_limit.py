"""An agent that uses more memory than it may is killed, and its end says so; the kernel's own kill is recognised."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.guest.hosting import AGENTS, Hosting, configured

from agentvisor.host.guests import AgentEnd, Guests
from agentvisor.protocol.v1.run_pb2 import Ending

pytestmark = pytest.mark.flow

MIB = 1 << 20
LIMIT = 96
"""MiB; a warm agent has about 30."""
CGROUPS = Path("/sys/fs/cgroup")


def agents(*names: str) -> dict[str, Any]:
    return {name: {"entrypoint": f"{AGENTS}/memory.py:{name}", "framework": "function"} for name in names}


@pytest.fixture(params=["zygote", "exec"])
async def host(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Hosting]:
    names = agents("heap", "child", "shared", "together")
    async with Guests(configured(tmp_path, names, request.param, memory_limit=f"{LIMIT}MiB")) as guests:
        yield Hosting(guests)


async def run(host: Hosting, agent: str, given: object) -> AgentEnd:
    end, _ = await host.run(agent, input=json.dumps(given).encode())
    return end


@pytest.mark.parametrize("agent", ["heap", "child", "shared"])
async def test_an_agent_over_its_limit_is_killed_and_reported_as_out_of_memory(host: Hosting, agent: str) -> None:
    end = await run(host, agent, 4 * LIMIT)
    assert end.ending == Ending.ENDING_AGENT_OUT_OF_MEMORY
    assert end.message.startswith("the agent used ")
    assert end.message.endswith(f"and its limit is {LIMIT} MiB (guest.memory_limit)")
    used = int(end.message.split()[3])
    assert LIMIT <= used <= 3 * LIMIT, "soon after it was passed"


async def test_what_processes_share_is_counted_once(host: Hosting) -> None:
    end = await run(host, "together", LIMIT // 2)
    assert end.ending == Ending.ENDING_COMPLETED, end


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup with a limit of its own, of the version that this machine has."""
    unified = CGROUPS / "cgroup.controllers"
    of_version_2 = unified.exists() and "memory" in unified.read_text()
    place = (CGROUPS if of_version_2 else CGROUPS / "memory") / f"agentvisor-test-{uuid4().hex[:8]}"
    try:
        place.mkdir()
        limit = "memory.max" if of_version_2 else "memory.limit_in_bytes"
        (place / limit).write_text(str(LIMIT * MIB))
    except OSError as error:
        if place.is_dir():
            place.rmdir()
        pytest.skip(f"only an administrator can make a cgroup with a limit: {error}")
    yield place
    place.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only an administrator can make a cgroup with a limit")
async def test_the_kernels_own_kill_is_reported_as_out_of_memory(tmp_path: Path, cgroup: Path) -> None:
    async with Guests(configured(tmp_path, agents("in_cgroup"))) as guests:
        end = await run(Hosting(guests), "in_cgroup", str(cgroup))
    assert (end.ending, end.message) == (
        Ending.ENDING_AGENT_OUT_OF_MEMORY,
        "the kernel killed the agent: memory ran out",
    )
