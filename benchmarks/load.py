"""Many clients at a time: open streams and open threads, every event and every final value checked, memory compared.

    python benchmarks/load.py [--streams 200] [--threads 500] [--events 50]

Real hosts (`agentvisor serve`) on one real Temporal server. One host first, then a second one beside it: then every
client reads where it happens to come, and half of the runs live on the other host. Each stream is a run on a thread of
its own whose agent says numbers; a client that misses one, hears one twice or out of order, or is told another end than
the thread's, ends the measurement. The open threads have had a run and are asked for their values at the end.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
from handover import Host, free_port
from langgraph_sdk.sse import SSEDecoder, aiter_lines_raw

from agentvisor.host.temporal_server import EmbeddedTemporal

AGENT = """\
import time

def agent(given):
    for number in range(given["events"]):
        yield {"number": number, "at": time.time()}
        time.sleep(given["pause"])
    return {"said": given["events"], "name": given["name"]}
"""
CONFIG = """\
agents:
  talker: {entrypoint: ./agent.py:agent, framework: function}
guest: {max_live_runs: 32}
temporal: {task_queue: load, heartbeat_timeout: 30s, run_restart: {max_attempts: 0}}
"""
PATIENCE = 600.0


@dataclass
class Told:
    """What one client of a stream has seen."""

    first: float
    """Seconds to the first number."""
    numbers: int
    lags: list[float]
    """Seconds from the agent to the client, of each."""
    moved: bool
    """The run lived on another host than the client's."""


async def got(http: httpx.AsyncClient, url: str) -> Any:
    """What is there; asked again where the host says that Temporal does not answer in time (503)."""
    while True:
        response = await http.get(url)
        if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            return response.raise_for_status().json()
        await asyncio.sleep(float(response.headers["retry-after"]))


async def stream(http: httpx.AsyncClient, url: str, events: int, pause: float) -> Told:
    """Start a run, read it to its end, and compare it with what must be."""
    named, name = str(uuid4()), uuid4().hex
    asked = {"events": events, "pause": pause, "name": name}
    body = {"assistant_id": "talker", "input": asked, "stream_mode": ["custom", "values"], "if_not_exists": "create"}
    began, first = time.monotonic(), 0.0
    told: list[tuple[str, Any, int]] = []
    lags: list[float] = []
    async with http.stream("POST", f"{url}/threads/{named}/runs/stream", json=body) as response:
        response.raise_for_status()
        place = response.headers["content-location"]
        decoder = SSEDecoder()
        async for line in aiter_lines_raw(response):
            part = decoder.decode(bytes(line))
            if part is not None:
                first = first or (time.monotonic() - began if part.event == "custom" else 0.0)
                told.append((part.event, part.data, int(part.id or 0)))
                if part.event == "custom":
                    lags.append(time.time() - told[-1][1]["at"])
    numbers = [data["number"] for event, data, _ in told if event == "custom"]
    ids = [number for event, _, number in told if event != "values"]
    end = {"said": events, "name": name}
    run = await got(http, f"{url}{place}")
    if (
        numbers != list(range(events))
        or told[-1][:2] != ("values", end)
        or run["status"] != "success"
        or len(run["attempts"]) != 1
        or any(left >= right for left, right in pairwise(ids))
    ):
        raise SystemExit(f"LOST: run {run} told {told[-5:]} of {len(told)} events")
    return Told(first, len(numbers), lags, str(run["attempts"][0]["host_id"]).split("-")[-2] != _pid_of(url))


_PIDS: dict[str, str] = {}


def _pid_of(url: str) -> str:
    return _PIDS[url]


async def open_thread(http: httpx.AsyncClient, url: str, most: asyncio.Semaphore) -> tuple[str, str]:
    """A thread that has had a run; its id, and the name that its values hold."""
    named, name = str(uuid4()), uuid4().hex
    body = {
        "assistant_id": "talker",
        "input": {"events": 1, "pause": 0, "name": name},
        "if_not_exists": "create",
    }
    async with most:
        values = (await http.post(f"{url}/threads/{named}/runs/wait", json=body)).raise_for_status().json()
    if values != {"said": 1, "name": name}:
        raise SystemExit(f"LOST: thread {named} answers {values}")
    return named, name


async def still_there(http: httpx.AsyncClient, url: str, thread: tuple[str, str], most: asyncio.Semaphore) -> None:
    async with most:
        found = await got(http, f"{url}/threads/{thread[0]}")
    if found["values"] != {"said": 1, "name": thread[1]} or found["status"] != "idle":
        raise SystemExit(f"LOST: thread {thread[0]} is {found}")


def memory(host: Host) -> float:
    """MiB of the host's own process; agents are processes of their own."""
    leash = psutil.Process(host.process.pid)
    family = [leash, *leash.children(recursive=True)]
    own = next(one for one in family if "agentvisor.cli.main" in " ".join(one.cmdline()) and "serve" in one.cmdline())
    _PIDS[host.url] = str(own.pid)
    return own.memory_info().rss / 1024 / 1024


async def most_memory(hosts: Sequence[Host], work: Coroutine[Any, Any, list[Told]]) -> tuple[list[Told], list[float]]:
    """The result, and the most that each host had while it was made."""
    most = [memory(host) for host in hosts]
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait([task], timeout=0.25)
        most = [max(before, memory(host)) for before, host in zip(most, hosts, strict=True)]
    return task.result(), most


async def streams(http: httpx.AsyncClient, hosts: Sequence[Host], options: argparse.Namespace) -> list[Told]:
    each = (stream(http, hosts[at % len(hosts)].url, options.events, options.pause) for at in range(options.streams))
    return list(await asyncio.gather(*each))


async def measured(http: httpx.AsyncClient, hosts: Sequence[Host], idle: Sequence[float], options: Any) -> None:
    began = time.monotonic()
    told, most = await most_memory(hosts, streams(http, hosts, options))
    seconds = time.monotonic() - began
    firsts = sorted(one.first for one in told)
    total = sum(one.numbers for one in told)
    print(f"{len(hosts)} host(s), {options.streams} streams at a time, 32 runs at a time on a host")
    print(f"  events checked                                  {total}, {total / seconds:.0f} a second")
    print("  lost, twice or out of order                     0")
    print(f"  runs that lived on another host than the client {sum(one.moved for one in told)}")
    print(f"  s to the first number: median, most             {firsts[len(firsts) // 2]:.2f}, {firsts[-1]:.2f}")
    for where, moved in (("its own host   ", False), ("another host   ", True)):
        lags = sorted(lag for one in told if one.moved == moved for lag in one.lags)
        if lags:
            median, late = lags[len(lags) // 2] * 1000, lags[len(lags) * 99 // 100] * 1000
            print(f"  ms from the agent to a client of {where} median {median:.0f}, 99 % within {late:.0f}")
    ratios = ", ".join(_ratio(*one) for one in zip(most, idle, strict=True))
    print(f"  memory, most / idle                             {ratios}")


def _ratio(most: float, idle: float) -> str:
    return f"{most / idle:.2f} ({most:.0f} MiB)"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--threads", type=int, default=500)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.02)
    options = parser.parse_args()
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, {load}\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    hosts: list[Host] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "agent.py").write_text(AGENT)
        (folder / "agentvisor.yaml").write_text(CONFIG)
        server = EmbeddedTemporal(
            data_dir=folder / "temporal", port=free_port(), ui_port=free_port(), namespace="default"
        )
        limits, timeout = httpx.Limits(max_connections=None), httpx.Timeout(PATIENCE)
        async with server, httpx.AsyncClient(limits=limits, timeout=timeout) as http:
            try:
                await _phases(http, hosts, folder, server.address, options)
            finally:
                for host in hosts:
                    host.process.terminate()
                for host in hosts:
                    await asyncio.to_thread(host.process.wait, 60)


async def _phases(http: httpx.AsyncClient, hosts: list[Host], folder: Path, temporal: str, options: Any) -> None:
    hosts.append(await asyncio.to_thread(Host, folder, temporal))
    idle = [memory(hosts[0])]
    most = asyncio.Semaphore(50)
    began = time.monotonic()
    threads = await asyncio.gather(*(open_thread(http, hosts[0].url, most) for _ in range(options.threads)))
    seconds = time.monotonic() - began
    print(f"1 host, {options.threads} threads opened, a run each: {options.threads / seconds:.1f} a second")
    print(f"  memory / idle                                   {_ratio(memory(hosts[0]), idle[0])}\n")
    await measured(http, hosts, idle, options)
    hosts.append(await asyncio.to_thread(Host, folder, temporal))
    idle.append(memory(hosts[1]))
    print()
    await measured(http, hosts, idle, options)
    began = time.monotonic()
    await asyncio.gather(*(still_there(http, hosts[at % 2].url, one, most) for at, one in enumerate(threads)))
    print(f"\n{options.threads} threads are still there with their values, read on both hosts: ", end="")
    print(f"{options.threads / (time.monotonic() - began):.0f} a second")
    print(json.dumps({"memory after, MiB": [round(memory(host)) for host in hosts]}))


if __name__ == "__main__":
    asyncio.run(main())
