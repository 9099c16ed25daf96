"""Milliseconds and bytes per super-step against PostgresSaver and SqliteSaver, measured in one run, in turns.

    python benchmarks/superstep.py [--rounds 5] [--steps 100 400]

Each measurement is a fresh thread in a fresh process; AgentVisor's runs in a guest of a real host on a real Temporal
server (dev server, SQLite), PostgreSQL is Debian's with fsync on. Prints medians and their ratios to PostgresSaver.
"""

import argparse
import asyncio
import json
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
from postgres import postgres

from agentvisor.core.ids import ThreadId
from agentvisor.host.app import running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import connect
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.threads_read import ThreadReader

HERE = Path(__file__).parent
AIMS = {100: 1.5, 400: 0.7}
"""Milliseconds, as a multiple of PostgresSaver's."""
AIM_BYTES = 1 / 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def peer(kind: str, address: str, steps: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(HERE / "peer.py"), kind, address, str(steps)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


async def ours(url: str, reader: ThreadReader, steps: int) -> dict[str, float]:
    async with httpx.AsyncClient(timeout=600) as http:
        thread = (await http.post(f"{url}/threads", json={})).json()["thread_id"]
        body = {"assistant_id": "conversation", "input": {"steps": steps}}
        output = (await http.post(f"{url}/threads/{thread}/runs/wait", json=body)).json()
        if "milliseconds" not in output:
            raise SystemExit(f"the run failed: {output}")
    info = (await reader.describe(ThreadId(thread))).workflow_execution_info
    return {
        "milliseconds": output["milliseconds"],
        "bytes": info.history_size_bytes,
        "events": info.history_length,
    }


async def measure_all(rounds: int, sizes: list[int], folder: Path, postgres_address: str) -> dict[int, dict[str, list]]:
    (folder / "agentvisor.yaml").write_text(
        f"agents:\n  conversation:\n    entrypoint: {HERE / 'conversation.py'}:agent\n    framework: function\n"
        f"http:\n  port: {free_port()}\n"
    )
    config = load_config(folder / "agentvisor.yaml", environ={})
    results: dict[int, dict[str, list]] = {}
    async with AsyncExitStack() as stack:
        server = EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port())
        await stack.enter_async_context(server)
        client = await connect(server.address, "default")
        host = await stack.enter_async_context(running_host(config, client))
        reader = ThreadReader(client)
        for steps in sizes:
            found: dict[str, list] = {"agentvisor": [], "postgres": [], "sqlite": []}
            for _ in range(rounds):
                found["agentvisor"].append(await ours(host.url, reader, steps))
                found["postgres"].append(await asyncio.to_thread(peer, "postgres", postgres_address, steps))
                found["sqlite"].append(await asyncio.to_thread(peer, "sqlite", str(folder / "peer.db"), steps))
            results[steps] = found
    return results


def report(results: dict[int, dict[str, list]], rounds: int) -> None:
    print(f"{platform.platform()}, Python {platform.python_version()}, {rounds} rounds, medians, durability sync")
    for steps, found in results.items():
        base = {key: statistics.median(one[key] for one in found["postgres"]) for key in ("milliseconds", "bytes")}
        print(f"\n{steps} super-steps, 1.5 KB a message")
        print(f"{'saver':12s}{'ms/step':>10s}{'x postgres':>12s}{'KB stored':>12s}{'x postgres':>12s}{'events':>8s}")
        for name, ones in found.items():
            milliseconds = statistics.median(one["milliseconds"] for one in ones)
            stored = statistics.median(one["bytes"] for one in ones)
            events = f"{statistics.median(one['events'] for one in ones):.0f}" if "events" in ones[0] else "-"
            print(
                f"{name:12s}{milliseconds:10.2f}{milliseconds / base['milliseconds']:12.2f}"
                f"{stored / 1024:12.0f}{stored / base['bytes']:12.3f}{events:>8s}"
            )
        ours_ms = statistics.median(one["milliseconds"] for one in found["agentvisor"]) / base["milliseconds"]
        ours_bytes = statistics.median(one["bytes"] for one in found["agentvisor"]) / base["bytes"]
        if steps in AIMS:
            say_aim("of PostgresSaver's time", ours_ms, AIMS[steps])
        say_aim("of PostgresSaver's bytes", ours_bytes, AIM_BYTES)


def say_aim(what: str, reached: float, aim: float) -> None:
    print(f"aim: at most {aim} {what}: {reached:.3f}, {'met' if reached <= aim else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 400])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-bench-"))
    try:
        with postgres() as address:
            report(asyncio.run(measure_all(given.rounds, given.steps, folder, address)), given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
