"""What a host, a guest, a run and a thread cost: memory, processor, bytes in Temporal's database, events of history.

    python benchmarks/sizing.py [--threads 600] [--live 20]

One `agentvisor serve` with one LangGraph agent on a Temporal server of its own (the embedded one, on SQLite). Memory is
the proportional share (PSS), so that what processes share counts once. docs/sizing.md is written from its output.
"""

import argparse
import asyncio
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from temporalio.client import Client

from agentvisor.host.temporal_client import connect
from agentvisor.host.temporal_server import EmbeddedTemporal

HERE = Path(__file__).parent
MIB = 1024 * 1024
CACHED = 200
"""Threads that a host keeps in memory (host/worker.py)."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pss(process: psutil.Process) -> float:
    return process.memory_full_info().pss / MIB


def guests_of(host: psutil.Process) -> list[psutil.Process]:
    return host.children(recursive=True)


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def stored(folder: Path) -> float:
    """KB of the database, with what its log has not yet put into it."""
    return sum(file.stat().st_size for file in folder.glob("temporal.db*") if not file.name.endswith("-shm")) / 1024


@contextmanager
def host_on(folder: Path, temporal: str, port: int, live: int) -> Generator[psutil.Process]:
    (folder / "agentvisor.yaml").write_text(
        f"agents: {{conversation: {HERE / 'sizing_agent.py'}:graph}}\n"
        f"temporal: {{address: '{temporal}'}}\nhttp: {{port: {port}}}\nguest: {{max_live_runs: {live}}}\n"
    )
    with (folder / "host.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentvisor.cli.main", "serve"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline(), (folder / "host.log").read_text()
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


async def runs(client: LangGraphClient, threads: list[str], wanted: int, at_once: int, pause: float = 0.0) -> float:
    """A run of so many super-steps on each; seconds."""
    slots = asyncio.Semaphore(at_once)

    async def one(thread: str) -> None:
        async with slots:
            given = {"wanted": wanted, "pause": pause}
            await client.runs.wait(thread, "conversation", input=given, if_not_exists="create")

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for thread in threads:
            group.create_task(one(thread))
    return time.monotonic() - began


async def history(temporal: Client, thread: str) -> tuple[int, int]:
    described = (await temporal.get_workflow_handle(thread).describe()).raw_description.workflow_execution_info
    return described.history_length, described.history_size_bytes


def line(what: str, value: float, unit: str, more: str = "") -> None:
    print(f"  {what:58s} {value:9.1f} {unit}{more}", flush=True)


async def measure(folder: Path, threads: int, live: int) -> None:
    data = folder / "data"
    data.mkdir()
    async with AsyncExitStack() as stack:
        server = EmbeddedTemporal(data_dir=data, port=free_port(), ui_port=free_port())
        await stack.enter_async_context(server)
        temporal = await connect(server.address, "default")
        port = free_port()
        host = stack.enter_context(host_on(folder, server.address, port, live))
        database = next(one for one in psutil.Process().children() if "temporal" in one.name())
        client = get_client(url=f"http://127.0.0.1:{port}", timeout=600)
        await memory(host, client, live)
        await cache(host, client, threads)
        await costs(host, database, client, temporal, data)


async def memory(host: psutil.Process, client: LangGraphClient, live: int) -> None:
    print("\nmemory (PSS)")
    await runs(client, ["warm"], 2, 1)
    line("a host that is ready, without guests", pss(host), "MiB")
    guest = sum(map(pss, guests_of(host)))
    line("its guest of one LangGraph agent, warm and idle", guest, "MiB")
    before = pss(host)
    going = asyncio.create_task(runs(client, [f"live-{n}" for n in range(live)], 1, live, pause=8.0))
    await asyncio.sleep(6)
    line(
        f"each live run more, {live} at a time: its agent's process",
        (sum(map(pss, guests_of(host))) - guest) / live,
        "MiB",
    )
    line("the same: of the host", (pss(host) - before) / live, "MiB")
    await going


async def costs(
    host: psutil.Process, database: psutil.Process, client: LangGraphClient, temporal: Client, data: Path
) -> None:
    for steps, count in ((10, 40), (100, 8)):
        names = [f"{steps}-{number}" for number in range(count)]
        was = cpu(host), cpu(database), stored(data)
        took = await runs(client, names, steps, 4)
        await asyncio.sleep(5)  # folds, and the deletion of what is done with
        total = steps * count
        events, size = await history(temporal, names[-1])
        print(f"\n{count} threads, a run of {steps} super-steps on each, a message of 1.5 KB a step; 4 at a time")
        line("super-steps a second, all together", total / took, "")
        line("processor of the host, a super-step", (cpu(host) - was[0]) * 1000 / total, "ms")
        line("processor of Temporal, a super-step", (cpu(database) - was[1]) * 1000 / total, "ms")
        line("processor of Temporal, a run", (cpu(database) - was[1]) * 1000 / count, "ms")
        line("Temporal's database, a thread", (stored(data) - was[2]) / count, "KB")
        line("the state's own size, a thread", steps * 1.5, "KB")
        line("events of its history", events, "", f"   {size / 1024:.1f} KB")


async def cache(host: psutil.Process, client: LangGraphClient, threads: int) -> None:
    print(f"\nthe host's memory with threads of 15 KB, a run of 10 super-steps on each; it keeps {CACHED} of them")
    done, before = 0, pss(host)
    for count in (CACHED // 4, CACHED // 2, CACHED, threads):
        await runs(client, [f"cached-{number}" for number in range(done, count)], 10, 8)
        done = count
        now = pss(host)
        line(f"after {count} threads", now, "MiB", f"   {(now - before) * 1024 / count:.0f} KiB a thread")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=600)
    parser.add_argument("--live", type=int, default=20)
    given: Any = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}")
    with tempfile.TemporaryDirectory(prefix="sizing-") as folder:
        asyncio.run(measure(Path(folder), given.threads, given.live))


if __name__ == "__main__":
    main()
