"""How long a run stands still after a loss: from a SIGKILL to the first line of the next attempt, on real parts.

    python benchmarks/recovery_time.py [--rounds 10] [--heartbeat-timeout 3] [--agents ...] [--losses ...]

What is configured (the backoff, the heartbeat timeout) is taken off: what is left is ours. Beside it stands what an
undisturbed run needs from the HTTP request to the same line, measured in the same run. Hosts are `agentvisor dev` in
processes of their own, on a real Temporal server (dev server, SQLite).
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from agentvisor.host import leash
from agentvisor.host.temporal_server import EmbeddedTemporal

HERE = Path(__file__).parent
AGENTS = {"function": "function", "langgraph": "make"}
LOSSES = ("agent", "guest", "host", "frozen")
AIM_PROCESS, AIM_HOST = 0.5, 2.0
"""Seconds over what is configured, by the median."""
DEADLINE = 60.0


class Host:
    """`agentvisor dev` in a process of its own."""

    def __init__(self, folder: Path, temporal: str, backoff: float) -> None:
        port = free_port()
        command = [sys.executable, "-m", "agentvisor.cli.main", "dev", "--no-reload", "--port", str(port)]
        self._process = subprocess.Popen(
            # It ends with this process, however that ends.
            [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command, "--temporal-address", temporal],
            cwd=folder,
            env={**os.environ, "AGENTVISOR_TEMPORAL_RUN_RESTART_INITIAL_BACKOFF": f"{backoff}s"},
            stdout=subprocess.PIPE,
            stderr=(folder / "host.log").open("a"),
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        if "ready" not in self._process.stdout.readline():
            raise SystemExit(f"the host did not start: {(folder / 'host.log').read_text()[-2000:]}")
        self.pid = self._process.pid
        self.client: SyncLangGraphClient = get_sync_client(url=f"http://127.0.0.1:{port}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()


class Bench:
    """A folder with a configuration, and the lines that agents wrote into it."""

    def __init__(self, folder: Path, temporal: str, heartbeat_timeout: float, names: list[str]) -> None:
        self.folder, self.temporal, self.heartbeat_timeout = folder, temporal, heartbeat_timeout
        self._began, self._gate = folder / "began", folder / "gate"
        environment = {"BEGAN": str(self._began), "GATE": str(self._gate)}
        agents = {
            name: {
                "entrypoint": f"{HERE / 'first_line.py'}:{AGENTS[name]}",
                "framework": name,
                "env": environment,
            }
            for name in names
        }
        temporal_settings = {
            "heartbeat_timeout": f"{heartbeat_timeout}s",
            "run_restart": {"max_attempts": 1000, "max_backoff": "2s"},
        }
        (folder / "agentvisor.yaml").write_text(json.dumps({"agents": agents, "temporal": temporal_settings}))

    @contextmanager
    def hosts(self, count: int, backoff: float) -> Iterator[list[Host]]:
        """As many hosts, with a warm guest for each agent."""
        hosts = [Host(self.folder, self.temporal, backoff) for _ in range(count)]
        try:
            yield hosts
        finally:
            for host in hosts:
                host.end()

    def lines(self, thread: str) -> list[dict]:
        lines = self._began.read_text().splitlines() if self._began.exists() else []
        return [one for one in map(json.loads, lines) if one["thread"] == thread]

    def line(self, thread: str, number: int) -> dict:
        """The line of the thread's attempt of that number, once it is there."""
        end = time.monotonic() + DEADLINE
        while len(self.lines(thread)) < number:
            if time.monotonic() > end:
                raise SystemExit(f"attempt {number} did not begin; {(self.folder / 'host.log').read_text()[-2000:]}")
            time.sleep(0.005)
        return self.lines(thread)[number - 1]

    @contextmanager
    def running(self, host: Host, agent: str) -> Iterator[tuple[str, float]]:
        """A thread with a run that has begun, and how long that took; the run completes at the end."""
        self._gate.unlink(missing_ok=True)
        thread = host.client.threads.create()["thread_id"]
        asked = time.time()
        run = host.client.runs.create(thread, agent, input={"done": False})["run_id"]
        yield thread, self.line(thread, 1)["at"] - asked
        self._gate.touch()
        with suppress(Exception):  # its host may be gone
            host.client.runs.join(thread, run)

    def wait_until_warm(self, host: Host, agent: str) -> None:
        with self.running(host, agent):
            pass

    # --- measurements ------------------------------------------------------------------------------------------------

    def undisturbed(self, agent: str, rounds: int) -> list[float]:
        found = []
        with self.hosts(1, 1.0) as (host,):
            self.wait_until_warm(host, agent)
            for _ in range(rounds):
                with self.running(host, agent) as (_, seconds):
                    found.append(seconds)
        return found

    def process_lost(self, agent: str, rounds: int, backoff: float, *, guest: bool = False) -> list[float]:
        """Of an agent's process, or of the whole guest's; the backoff is taken off."""
        found = []
        with self.hosts(1, backoff) as (host,):
            self.wait_until_warm(host, agent)
            for _ in range(rounds):
                with self.running(host, agent) as (thread, _):
                    pid = self.line(thread, 1)["pid"]
                    victim = psutil.Process(pid).parents()[1].pid if guest else pid
                    killed = time.time()
                    os.kill(victim, signal.SIGKILL)
                    found.append(self.line(thread, 2)["at"] - killed - backoff)
        return found

    def host_lost(self, agent: str, rounds: int, backoff: float, *, frozen: bool = False) -> list[float]:
        """Heartbeat timeout and backoff are taken off."""
        found = []
        with self.hosts(2, backoff) as hosts:
            for host in hosts:
                self.wait_until_warm(host, agent)
            for _ in range(rounds):
                with self.running(hosts[0], agent) as (thread, _):
                    family = {one.pid for one in psutil.Process(self.line(thread, 1)["pid"]).parents()}
                    victim = next(host for host in hosts if host.pid in family)
                    lost = time.time()
                    os.kill(victim.pid, signal.SIGSTOP if frozen else signal.SIGKILL)
                    found.append(self.line(thread, 2)["at"] - lost - self.heartbeat_timeout - backoff)
                    os.kill(victim.pid, signal.SIGCONT)
                if not frozen:
                    victim.end()
                    hosts.remove(victim)
                    hosts.append(Host(self.folder, self.temporal, backoff))
                    self.wait_until_warm(hosts[0], agent)
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def row(what: str, agent: str, found: list[float], fresh: float, aim: float | None) -> None:
    middle = statistics.median(found)
    says = "" if aim is None else f"  aim {aim:g} s: {'met' if middle <= aim else 'MISSED'}"
    print(f"{what:44s}{agent:11s}{middle:9.3f}{max(found):9.3f}{middle / fresh:9.1f}{says}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--heartbeat-timeout", type=float, default=3.0)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-bench-"))
    try:
        server = EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port())
        async with server:
            bench = Bench(folder, server.address, given.heartbeat_timeout, given.agents)
            await asyncio.to_thread(measure, bench, given.rounds, given.agents, given.losses)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(bench: Bench, rounds: int, agents: list[str], losses: list[str]) -> None:
    timeout = f"heartbeat timeout {bench.heartbeat_timeout:g} s"
    print(f"{platform.platform()}, Python {platform.python_version()}, {rounds} rounds, {timeout}")
    print("seconds to the first line of the next attempt, less what is configured")
    print(f"{'':44s}{'agent':11s}{'median':>9s}{'most':>9s}{'x fresh':>9s}")
    few = max(1, rounds // 3)
    for agent in agents:
        found = bench.undisturbed(agent, rounds)
        fresh = statistics.median(found)
        row("undisturbed: from the HTTP request", agent, found, fresh, None)
        for backoff in (0.05, 2.0) if "agent" in losses else ():
            found = bench.process_lost(agent, rounds, backoff)
            row(f"agent SIGKILLed, less a backoff of {backoff:g} s", agent, found, fresh, AIM_PROCESS)
        if "guest" in losses:
            found = bench.process_lost(agent, few, 0.05, guest=True)
            row("guest SIGKILLed (the next one starts cold)", agent, found, fresh, None)
        if "host" in losses:
            found = bench.host_lost(agent, few, 0.05)
            row("host SIGKILLed, less the heartbeat timeout", agent, found, fresh, AIM_HOST)
        if "frozen" in losses:
            found = bench.host_lost(agent, few, 0.05, frozen=True)
            row("host frozen, less the heartbeat timeout", agent, found, fresh, None)


if __name__ == "__main__":
    asyncio.run(main())
