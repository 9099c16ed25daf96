"""A host that is killed while it imports a thread: the thread is there with everything, or not at all."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from random import Random

import httpx
import pytest
import pytest_asyncio
import yaml
from tests.cli.conftest import run_command
from tests.host.http.export_agents import __file__ as agents_file
from tests.host.http.test_flow_threads import unique
from tests.support.host_process import HostProcess
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

KILLS = int(os.environ.get("IMPORT_KILLS", "2"))
"""Of each two one about the moment at which the thread is created, one while the file comes in; make more with it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    settings = {
        "agents": {"growing": f"{agents_file}:growing"},
        "temporal": {"task_queue": unique()},
        "storage": {"url": f"file://{folder / 'values'}", "max_inline_value": 20_000},
    }
    (folder / "agentvisor.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture(scope="module")
def process(folder: Path, temporal: TemporalProcess) -> Generator[HostProcess]:
    process = HostProcess(folder, temporal.address, {}, command="serve").start()
    yield process
    process.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def exported(process: HostProcess, folder: Path) -> AsyncGenerator[tuple[Path, object]]:
    """A file, and the state that the thread in it has."""
    named = unique()
    async with httpx.AsyncClient(base_url=process.url, timeout=60) as http:
        for _ in range(2):
            body = {"assistant_id": "growing", "input": {}, "if_not_exists": "create"}
            (await http.post(f"/threads/{named}/runs/wait", json=body)).raise_for_status()
        state = (await http.get(f"/threads/{named}/history")).text
    file = folder / "thread.agentvisor"
    assert (await run_command("threads", "export", named, "-o", str(file), "--url", process.url)).code == 0
    yield file, json.loads(state.replace(named, "ID"))


@pytest.mark.parametrize("number", range(KILLS))
async def test_a_killed_host_has_imported_all_or_nothing_and_it_can_be_repeated(
    process: HostProcess, exported: tuple[Path, object], number: int
) -> None:
    file, state = exported
    named, chance = unique(), Random(number)
    command = (sys.executable, "-m", "agentvisor.cli.main", "threads", "import", "-", "--thread", named)
    importing = await asyncio.create_subprocess_exec(
        *command, "--url", process.url, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert importing.stdin is not None
    data = file.read_bytes()
    # So much that a value is here for sure.
    cut = chance.randrange(len(data) * 3 // 4, len(data)) if number % 2 else len(data)
    importing.stdin.write(data[:cut])
    if cut == len(data):
        importing.stdin.close()
    values = file.parent / "values"

    async def it_has_begun() -> bool:
        return any(named in str(one) for one in values.rglob("*"))

    await until(it_has_begun, seconds=60)
    await asyncio.sleep(chance.random() * 0.1 if number % 2 == 0 else 0)  # which moment it is, chance says
    process.kill()
    if cut < len(data):
        importing.stdin.close()
    assert importing.stderr is not None
    said = (await importing.stderr.read()).decode()
    code = await importing.wait()
    process.start()
    async with httpx.AsyncClient(base_url=process.url, timeout=60) as http:
        found = await http.get(f"/threads/{named}/history")
        is_there = found.status_code == 200
        assert found.status_code in (200, 404)
        assert is_there or code == 7, said
        assert "no AgentVisor host answers" in said or code == 0
        again = await run_command("threads", "import", str(file), "--thread", named, "--url", process.url)
        assert again.code == (4 if is_there else 0), again.err
        shown = (await http.get(f"/threads/{named}/history")).text
        assert json.loads(shown.replace(named, "ID")) == state
        body = {"assistant_id": "growing", "command": {"resume": "yes"}}
        ended = (await http.post(f"/threads/{named}/runs/wait", json=body)).json()
        assert ended["log"][-1] == "answer yes"
        assert (await http.delete(f"/threads/{named}")).status_code == 204

    async def nothing_is_left() -> bool:
        return not any(named in str(one) for one in values.rglob("*") if one.is_file())

    await until(nothing_is_left)
