"""`agentvisor demo`: a real agent loses its process, its host and its Temporal server, and finishes all the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import cast

import httpx
from rich.console import Console
from rich.table import Table

from agentvisor.cli.demo_counter import Counter
from agentvisor.host import leash
from agentvisor.host.temporal_server import EmbeddedTemporal

PROJECT = Path(__file__).parent / "demo_project"
_DEADLINE = 60.0
_POLL = 0.05

console = Console(highlight=False)
State = dict[str, object]


class DemoFailed(Exception):
    """The promise was not kept: the demonstration says where."""


class Host:
    """A host in a process of its own, which can be killed."""

    def __init__(self, folder: Path, temporal: str) -> None:
        self.folder, self.temporal = folder, temporal
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        port = free_port()
        command = [sys.executable, "-m", "agentvisor.cli.main", "dev", "--no-reload", "--port", str(port)]
        command += ["--temporal-address", self.temporal, "--config", str(self.folder / "agentvisor.yaml")]
        leashed = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command]
        with (self.folder / "host.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *leashed, cwd=self.folder, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: it was asked for above
        line = (await asyncio.wait_for(self._process.stdout.readline(), _DEADLINE)).decode().strip()
        if "ready at" not in line:
            raise DemoFailed(f"the host did not start; see {self.folder / 'host.log'}")
        self.url = line.rpartition(" ")[2]

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    async def end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()


def run_demo() -> int:
    """Run the demonstration; 0 where every promise held."""
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-demo-"))
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        asyncio.run(_demo(folder))
    except DemoFailed as failure:
        console.print(f"[red]FAILED[/]: {failure} (logs are in {folder})")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _demo(folder: Path) -> None:
    ports = free_port(), free_port()
    thread = "demo-release"
    with Counter() as counter:
        settings = folder / "agentvisor.yaml"
        settings.write_text(settings.read_text().replace("@COUNTER@", counter.url))
        async with _everything(folder, ports) as (server, host, http):
            seen = await _three_kills(thread, server, host, http, counter)
        console.print("[bold]Everything is stopped.[/] The thread waits in Temporal's database; starting it all again.")
        async with _everything(folder, ports) as (_, host, http):
            await _answer(thread, host, http)
            await _report(thread, host, http, counter, seen)


@asynccontextmanager
async def _everything(
    folder: Path, ports: tuple[int, int]
) -> AsyncGenerator[tuple[EmbeddedTemporal, Host, httpx.AsyncClient]]:
    async with EmbeddedTemporal(data_dir=folder / "data", port=ports[0], ui_port=ports[1]) as server:
        host = Host(folder, server.address)
        await host.start()
        try:
            async with httpx.AsyncClient(timeout=30) as http:
                yield server, host, http
        finally:
            await host.end(signal.SIGTERM)


async def _three_kills(
    thread: str, server: EmbeddedTemporal, host: Host, http: httpx.AsyncClient, counter: Counter
) -> set[str]:
    """Start the run, kill something in the middle of each parallel super-step; the checkpoints seen on the way."""
    question = {"messages": [{"role": "user", "content": "Release version 7 of all services."}]}
    await http.post(f"{host.url}/threads", json={"thread_id": thread})
    body = {"assistant_id": "release", "input": question}
    run = (await http.post(f"{host.url}/threads/{thread}/runs", json=body)).json()
    console.print(
        f"Run [bold]{run['run_id']}[/] of a LangGraph agent on thread [bold]{thread}[/]; host pid {host.pid}."
    )
    seen: set[str] = set()

    await _middle_of(thread, "scan", host, http, counter)
    seen |= await _checkpoints(thread, host, http)
    victim = counter.pid
    os.kill(victim, signal.SIGKILL)
    console.print(f"[red]kill -9[/] of the agent process (pid {victim}), in the middle of a parallel super-step")

    await _middle_of(thread, "build", host, http, counter)
    seen |= await _checkpoints(thread, host, http)
    console.print(f"[red]kill -9[/] of the host (pid {host.pid})")
    await host.end(signal.SIGKILL)
    await host.start()
    console.print(f"another host has started (pid {host.pid})")

    await _middle_of(thread, "announce", host, http, counter)
    seen |= await _checkpoints(thread, host, http)
    os.kill(server.pid, signal.SIGKILL)
    console.print("[red]kill -9[/] of the Temporal server; it is restarted on its database")

    waiting = await _until("the run to end", lambda: _ended(thread, run["run_id"], host, http))
    if waiting["status"] != "success":
        raise DemoFailed(f"the run ended as {waiting['status']}")
    return seen


async def _middle_of(thread: str, tool: str, host: Host, http: httpx.AsyncClient, counter: Counter) -> None:
    """Wait until two of three parallel tools have finished durably and the third has begun."""

    async def reached() -> bool:
        if not counter.begun(f"{tool} mail") or counter.finished(f"{tool} mail"):
            return False
        state = (await http.get(f"{host.url}/threads/{thread}/state")).json()
        return sum(1 for task in state.get("tasks", ()) if task.get("result") is not None) == 2

    await _until(f"the middle of the super-step of {tool}", reached)


async def _ended(thread: str, run_id: str, host: Host, http: httpx.AsyncClient) -> State | None:
    reply = await http.get(f"{host.url}/threads/{thread}/runs/{run_id}")
    run: State = reply.json()
    return run if run.get("status") not in (None, "pending", "running") else None


async def _checkpoints(thread: str, host: Host, http: httpx.AsyncClient) -> set[str]:
    history = (await http.get(f"{host.url}/threads/{thread}/history", params={"limit": 1000})).json()
    return {one["checkpoint"]["checkpoint_id"] for one in history}


async def _answer(thread: str, host: Host, http: httpx.AsyncClient) -> None:
    state = (await http.get(f"{host.url}/threads/{thread}/state")).json()
    if not state["interrupts"]:
        raise DemoFailed("the question did not survive the restart")
    console.print(f"The agent asks: [bold]{state['interrupts'][0]['value']['question']}[/] Answer: approve")
    body = {"assistant_id": "release", "command": {"resume": "approve"}}
    values = (await http.post(f"{host.url}/threads/{thread}/runs/wait", json=body)).json()
    if values["messages"][-1]["content"] != "Deployed.":
        raise DemoFailed(f"the answered run ended with {values['messages'][-1]}")
    console.print("The agent says: [bold]Deployed.[/]")


async def _report(thread: str, host: Host, http: httpx.AsyncClient, counter: Counter, seen: set[str]) -> None:
    table = Table(title="Attempts", title_justify="left")
    for column in ("run", "attempt", "host", "seconds", "ended because"):
        table.add_column(column)
    runs = (await http.get(f"{host.url}/threads/{thread}/runs")).json()
    for run in reversed(runs):
        for attempt in run["attempts"]:
            table.add_row(
                run["run_id"][:8],
                str(attempt["attempt"]),
                attempt["host_id"],
                _seconds(attempt),
                attempt["reason"],
            )
    console.print(table)
    counts = Table(title="Side effects, counted outside the agent", title_justify="left")
    for column in ("what", "begun", "finished"):
        counts.add_column(column)
    for what in counter.all():
        counts.add_row(what, str(counter.begun(what)), str(counter.finished(what)))
    console.print(counts)
    twice = [what for what in counter.all() if counter.finished(what) != 1]
    if twice:
        raise DemoFailed(f"finished other than once: {', '.join(twice)}")
    missing = seen - await _checkpoints(thread, host, http)
    if missing:
        raise DemoFailed(f"acknowledged checkpoints are missing: {missing}")
    console.print(
        f"[green]Every task finished once[/] ({len(counter.all())} tasks, 3 kills), and "
        f"[green]none of the {len(seen)} checkpoints[/] that were acknowledged before a kill is missing."
    )


def _seconds(attempt: dict[str, str]) -> str:
    began, ended = (datetime.fromisoformat(attempt[at]) for at in ("scheduled_at", "ended_at"))
    return f"{(ended - began).total_seconds():.1f}"


async def _until(what: str, look: Callable[[], Awaitable[object]]) -> State:
    """Look until there is something; whatever does not answer meanwhile is being restarted."""
    end = monotonic() + _DEADLINE
    while monotonic() < end:
        try:
            found = await look()
        except (httpx.HTTPError, ValueError):
            found = None
        if found:
            return cast("State", found) if isinstance(found, dict) else {}
        await asyncio.sleep(_POLL)
    raise DemoFailed(f"waited {_DEADLINE:g} s in vain for {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
