"""A host that is told to stop: how long its run stands still until another host's process goes on with it.

    python benchmarks/handover.py [--rounds 10]

Real hosts (`agentvisor serve`) on one real Temporal server. Each round starts one more host, sends SIGTERM to the one
on which the run's agent is at work, and waits for its end and for the first line of the agent's code elsewhere. With
`boundary` the agent's tools take 0.2 s, and the run is handed over between two of them; with `forced` the tool under
way never ends by itself, and the drain (2 s here) is waited for.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from agentvisor.host import leash
from agentvisor.host.temporal_server import EmbeddedTemporal

AGENT = """\
import json, os, time
from langgraph.graph import END, START, StateGraph

def say(what):
    line = json.dumps({"what": what, "pid": os.getpid(), "at": time.time()})
    with open(os.environ["SAID"], "a") as said:
        said.write(line + "\\n")

def tool(state):
    say("began")
    time.sleep(0.2 if state["quick"] else 3600)
    say("ended")
    return {"count": state.get("count", 0) + 1}

builder = StateGraph(dict)
builder.add_node("tool", lambda state: {**state, **tool(state)})
builder.add_edge(START, "tool")
builder.add_conditional_edges("tool", lambda state: END if os.path.exists(os.environ["SAID"] + ".end") else "tool")
graph = builder.compile().with_config(recursion_limit=100_000)
"""
PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit("MISSED: it did not come true in a minute")
        time.sleep(0.002)
    return found


class Host:
    """One `agentvisor serve`, and what it has logged."""

    def __init__(self, folder: Path, temporal: str) -> None:
        port = free_port()
        self.log = folder / f"host-{port}.log"
        self.url = f"http://127.0.0.1:{port}"
        leashed = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), sys.executable, "-m"]
        command = ["agentvisor.cli.main", "serve", "--port", str(port), "--temporal-address", temporal]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*leashed, *command],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        if "ready" not in self.process.stdout.readline():
            raise SystemExit(self.log.read_text()[-4000:])

    def logged(self, event: str) -> float | None:
        """When it logged an event last."""
        times = [one["timestamp"] for one in map(_parsed, self.log.read_text().splitlines()) if one["event"] == event]
        return datetime.fromisoformat(times[-1]).timestamp() if times else None


def _parsed(line: str) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except ValueError:
        return {"event": ""}


@dataclass
class Round:
    """Seconds of one hand-over."""

    exited: float
    """From the signal to the exit."""
    after_exit: float
    """From the first host's exit to the first line on the second; less than 0: it was at work before."""
    idle: float
    """From the end of the agent's work on the first host to the first line on the second."""
    phases: str
    """Of what that consists."""


def measure(folder: Path, temporal: str, *, rounds: int, quick: bool) -> tuple[list[Round], int]:
    """The hand-overs of one run, and how many restarts were counted."""
    said = folder / f"said-{quick}"
    (folder / "agent.py").write_text(AGENT)
    agents = {"agent": {"entrypoint": "./agent.py:graph", "env": {"SAID": str(said)}}}
    settings = {"task_queue": f"handover-{quick}", "drain_timeout": "30s" if quick else "2s"}
    (folder / "agentvisor.yaml").write_text(json.dumps({"agents": agents, "temporal": settings}))
    hosts = [Host(folder, temporal)]
    thread = httpx.post(f"{hosts[0].url}/threads", json={}).json()["thread_id"]
    body = {"assistant_id": "agent", "input": {"quick": quick}}
    run = httpx.post(f"{hosts[0].url}/threads/{thread}/runs", json=body).json()["run_id"]

    def lines(what: str) -> list[dict[str, Any]]:
        text = said.read_text() if said.exists() else ""
        return [one for one in map(_parsed, text.splitlines()) if one.get("what") == what]

    found: list[Round] = []
    try:
        until(lambda: lines("began"))
        for _ in range(rounds):
            first = hosts[-1]
            hosts.append(Host(folder, temporal))
            pid, told = lines("began")[-1]["pid"], time.time()
            first.process.send_signal(signal.SIGTERM)
            first.process.wait(PATIENCE)
            exited = time.time()
            begun = until(lambda pid=pid, told=told: _elsewhere(lines("began"), pid, told))
            stopped = [one["at"] for one in lines("ended") if one["pid"] == pid]
            worked = stopped[-1] if quick else (first.logged("run_given_back") or exited)
            reported = first.logged("attempt_ended") or exited
            started = hosts[-1].logged("agent_started") or begun
            phases = (
                f"reported {reported - worked:.3f} s after the work, started {started - reported:.3f} s after the "
                f"report, first line {begun - started:.3f} s after the start"
            )
            found.append(Round(exited - told, begun - exited, begun - worked, phases))
        attempts = httpx.get(f"{hosts[-1].url}/threads/{thread}/runs/{run}").json()["attempts"]
        return found, sum(one["ending"] != "host_stopped" for one in attempts[:-1])
    finally:
        Path(f"{said}.end").touch()
        for host in hosts:
            if host.process.poll() is None:
                host.process.kill()
                host.process.wait()


def _elsewhere(began: list[dict[str, Any]], pid: int, told: float) -> float | None:
    """When the first tool after the signal began in another process."""
    return next((one["at"] for one in began if one["at"] > told and one["pid"] != pid), None)


def report(name: str, rounds: list[Round], restarts: int) -> bool:
    def row(what: str, values: list[float]) -> None:
        print(f"{what:60s}{statistics.median(values):8.3f}{max(values):8.3f}")

    print(f"\n{f'{name}, {len(rounds)} hand-overs':60s}{'median':>8s}{'most':>8s}")
    row("  s from SIGTERM to the first host's exit", [one.exited for one in rounds])
    row("  s from that exit to the first line of agent code elsewhere", [one.after_exit for one in rounds])
    row("  s between the agent's work here and there", [one.idle for one in rounds])
    print(f"  the longest: {max(rounds, key=lambda one: one.idle).phases}")
    print(f"  restarts counted: {restarts}")
    met = max(one.after_exit for one in rounds) < 1.0 and restarts == 0
    print(f"  aim: at work elsewhere within 1 s of the exit, no restart: {'met' if met else 'MISSED'}")
    return met


async def compare(rounds: int, folder: Path) -> bool:
    async with EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port()) as server:
        print(
            f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f}"
        )
        met = True
        for name, quick in (("boundary", True), ("forced", False)):
            found, restarts = await asyncio.to_thread(measure, folder, server.address, rounds=rounds, quick=quick)
            met = report(name, found, restarts) and met
        return met


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-handover-"))
    try:
        met = asyncio.run(compare(given.rounds, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
