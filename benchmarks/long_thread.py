"""One thread for thousands of super-steps, through many compactions: time per step and memory stay flat.

    python benchmarks/long_thread.py [--steps 2500] [--compact-events 120]

A step of the agent is two super-steps, so that 2,500 make more than 5,000; every tenth fans out. Prints milliseconds
per super-step and the memory of the host (its worker and the workflow's state are in the same process) for each
thousand super-steps, and the ratio of the last thousand to the first. Fails where the final state is not the model's.
"""

import argparse
import asyncio
import os
import platform
import shutil
import socket
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import psutil
from long_agent import expected

from agentvisor.core.ids import ThreadId
from agentvisor.host.app import running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import connect
from agentvisor.host.temporal_server import EmbeddedTemporal

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def sampled(samples: list[tuple[float, float]]) -> None:
    """This process's memory in MB, twice a second."""
    process = psutil.Process(os.getpid())
    while True:
        samples.append((time.time(), process.memory_info().rss / 1e6))
        await asyncio.sleep(0.5)


async def measure(steps: int, compact_events: int, folder: Path) -> None:
    (folder / "agentvisor.yaml").write_text(
        f"agents:\n  long:\n    entrypoint: {HERE / 'long_agent.py'}:agent\n    framework: function\n"
        f"http:\n  port: {free_port()}\ntemporal:\n  compact_events: {compact_events}\n  max_checkpoint_history: 50\n"
    )
    config = load_config(folder / "agentvisor.yaml", environ={})
    samples = list[tuple[float, float]]()
    async with AsyncExitStack() as stack:
        server = EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port())
        await stack.enter_async_context(server)
        host = await stack.enter_async_context(running_host(config, await connect(server.address, "default")))
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=1800))
        sampling = asyncio.create_task(sampled(samples))
        thread_id = ThreadId((await http.post(f"{host.url}/threads", json={})).json()["thread_id"])
        body = {"assistant_id": "long", "input": {"steps": steps}}
        output = (await http.post(f"{host.url}/threads/{thread_id}/runs/wait", json=body)).json()
        sampling.cancel()
        if "state" not in output:
            raise SystemExit(f"the run failed: {output}")
        state = (await http.get(f"{host.url}/threads/{thread_id}/state")).json()["values"]
        thread = await host.threads.read(thread_id)
        run = next(iter(thread.runs.values()))
        report(steps, output["began"], samples)
        kept = {key: state[key] for key in ("n", "steps", "total", "notes")}
        same = output["state"] == expected(steps) == kept
        print(f"compactions: {thread.compactions}, attempts of the run: {len(run.attempts)}, "
              f"checkpoints kept: {len(thread.store.checkpoints[''])}")  # fmt: skip
        print(f"final state equal to the model's: {same}")
        if not same or thread.compactions < 5 or len(run.attempts) != 1:
            raise SystemExit("MISSED")


def report(steps: int, began: list[float], samples: list[tuple[float, float]]) -> None:
    """Super-steps: two a step, and one more each tenth."""
    print(f"{platform.platform()}, Python {platform.python_version()}, durability sync, a fan-out every tenth step")
    print(f"{steps * 21 // 10} super-steps")
    print(f"{'super-steps':>14s}{'ms/super-step':>15s}{'host MB':>9s}")
    block, rows = max(1, min(5, (len(began) - 1) // 2)), list[tuple[float, float]]()
    for first in range(0, len(began) - 1, block):
        last = min(first + block, len(began) - 1)
        milliseconds = (began[last] - began[first]) / ((last - first) * 210) * 1e3
        memory = max((mb for at, mb in samples if began[first] <= at <= began[last]), default=0.0)
        rows.append((milliseconds, memory))
        print(f"{last * 210:14d}{milliseconds:15.2f}{memory:9.0f}")
    print(f"last to first: time {rows[-1][0] / rows[0][0]:.2f}, memory {rows[-1][1] / rows[0][1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--compact-events", type=int, default=120)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-long-"))
    try:
        asyncio.run(measure(given.steps, given.compact_events, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
