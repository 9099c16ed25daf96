"""The stage of the fault matrix: real servers with a line between each two of them, and one run that a fault hits."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from uuid import uuid4

import httpx
import psutil
from tests.support.lines import GuestLines, Line, tcp_line
from tests.support.proxy import TemporalProxy, proxy_to
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

from agentvisor.cli.torturing.client import Client, Json, NoAnswer, checkpoints
from agentvisor.cli.torturing.lanes import Story, check
from agentvisor.cli.torturing.records import Record, Records
from agentvisor.cli.torturing.running import PROJECT
from agentvisor.cli.torturing.stage import TorturedHost
from agentvisor.cli.torturing.truths import Violation

SECONDS = 40.0
HEARTBEAT_TIMEOUT = 3.0
ASKED: Json = {"rounds": 2, "width": 3, "seconds": 0.6, "asks": False}

_SETTINGS = """\
agents:
  tortured:
    entrypoint: {agent}
    framework: langgraph
    python_path: [{project}]
    env: {{TORTURE_RECORDS: {records}}}
temporal:
  task_queue: {queue}
  heartbeat_timeout: {timeout}s
  idle_heartbeat: 500ms
  drain_timeout: 1s
  run_restart: {{initial_backoff: 50ms, max_attempts: 20}}
guest: {{stop_grace: 500ms}}
dev: {{data_dir: {folder}/data}}
"""


@dataclass
class FaultScene:
    """Everything that a fault may be done to."""

    temporal: TemporalProcess
    proxy: TemporalProxy
    """Between hosts and Temporal."""
    hosts: list[TorturedHost]
    http: Line
    """Between the client and hosts."""
    guests: GuestLines
    """Between guests and their hosts."""
    records: Records
    client: Client

    def mend(self) -> None:
        for each in (self.proxy, self.http, self.guests):
            each.mend()

    async def all_there(self) -> None:
        """Every host takes runs: a fault starts from a stage that is whole."""
        await until(lambda: all(host.url for host in self.hosts), seconds=SECONDS)


class HitRun:
    """One run of rounds of three tasks side by side, and what the test knows of it from outside."""

    def __init__(self, scene: FaultScene) -> None:
        self.scene = scene
        self.thread = f"matrix-{uuid4().hex[:8]}"
        self.run = ""
        self.pid = 0
        """The agent process that the fault meets."""
        self._story = Story()

    # --- the run -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Have it accepted, once."""
        async with asyncio.timeout(SECONDS):
            await self.scene.client.create_thread(self.thread)
            self.run = await self.scene.client.start_run(self.thread, 1, ASKED)
        self._story.threads[self.thread] = {self.run}

    async def middle(self, attempt: int = 1) -> None:
        """Wait until a task of a fan-out has finished durably and another one is at work."""
        if not self.run:
            await self.start()

        def reached() -> bool:
            written = {one.task for one in self.records() if one.what == "written"}
            tasks = [one for one in self.records() if one.what == "started" and one.name[-1].isdigit()]
            begun = [one.pid for one in tasks if one.task not in written and one.attempt >= attempt]
            if not begun or not any(one.task in written for one in tasks):
                return False
            self.pid = begun[-1]
            return psutil.pid_exists(self.pid)

        await until(reached, seconds=SECONDS)

    async def endings(self) -> list[str | None]:
        """See it to its end; how its attempts ended."""
        if not self.run:
            await self.start()
        found: list[Json] = []

        async def all_ended() -> bool:
            with contextlib.suppress(NoAnswer):
                found[:] = await self.scene.client.runs(self.thread)
            return bool(found) and all(one["status"] not in ("pending", "running") for one in found)

        await until(all_ended, seconds=SECONDS)
        (mine,) = (one for one in found if one["run_id"] == self.run)
        return [one["ending"] for one in mine["attempts"]]  # type: ignore[union-attr, index]

    async def violations(self) -> list[Violation]:
        """The four truths, of all that is on the thread's record."""
        return await check(self.thread, self.scene.client, self.scene.records, self._story)

    async def runs(self) -> int:
        return len(await self.scene.client.runs(self.thread))

    # --- outside -----------------------------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        return self.scene.records.of(self.thread)

    def tell(self, name: str) -> None:
        """Put a sign up for this thread's agents (lined_agent.py)."""
        (self.scene.records.folder / f"{self.thread}.{name}").touch()

    async def until_attempt(self, number: int) -> None:
        """An attempt of that number is at work."""
        await until(lambda: any(one.attempt >= number for one in self.records()), seconds=SECONDS)

    async def until_waiting(self) -> None:
        """A further task has returned, and its agent waits to be told that this is durable."""

        def returned() -> int:
            return sum(one.what == "returning" for one in self.records())

        before = returned()
        await until(lambda: returned() > before, seconds=SECONDS)
        # It would be told in a few milliseconds.
        await asyncio.sleep(0.3)

    async def until_unheard(self) -> None:
        """What a task has written is durable, and its agent does not know it."""
        heard = {one.task for one in self.records() if one.what == "written"}

        async def committed() -> bool:
            history = checkpoints(await self.scene.client.history(self.thread))
            return any(one.finished_tasks - heard for one in history)

        await until(committed, seconds=SECONDS)
        assert heard == {one.task for one in self.records() if one.what == "written"}

    # --- its processes -----------------------------------------------------------------------------------------------

    @property
    def guest(self) -> tuple[int, int]:
        """Zygote and supervisor."""
        zygote, supervisor = psutil.Process(self.pid).parents()[:2]
        return zygote.pid, supervisor.pid

    @property
    def host(self) -> TorturedHost:
        family = {one.pid for one in psutil.Process(self.pid).parents()}
        return next(host for host in self.scene.hosts if host.pid in family)

    @property
    def line(self) -> Line:
        """Between its guest and its host."""
        return self.scene.guests.of(self.pid)


def send(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


async def stutter(*pids: int) -> None:
    """Each stands still for a while and goes on, again and again: everything that it does comes late."""
    for _ in range(8):
        send(signal.SIGSTOP, *pids)
        await asyncio.sleep(0.15)
        send(signal.SIGCONT, *pids)
        await asyncio.sleep(0.05)


async def stand_still(*pids: int, seconds: float) -> None:
    send(signal.SIGSTOP, *pids)
    await asyncio.sleep(seconds)
    send(signal.SIGCONT, *pids)


@asynccontextmanager
async def fault_scene(server: Callable[[Path], TemporalProcess] = TemporalProcess) -> AsyncGenerator[FaultScene]:
    """Two hosts of one Temporal server, with lines in between; gone afterwards, with all that they have started."""
    with tempfile.TemporaryDirectory(prefix="av-") as name:  # short: a guest's socket has a path in it
        folder = Path(name)
        records = Records(folder / "records")
        temporal = server(folder / "temporal")
        await temporal.start()
        agent = Path(__file__).with_name("lined_agent.py")
        settings = _SETTINGS.format(
            agent=f"{agent}:graph",
            project=PROJECT,
            records=records.folder,
            queue=f"matrix-{uuid4().hex[:8]}",
            timeout=HEARTBEAT_TIMEOUT,
            folder=folder,
        )
        (folder / "agentvisor.yaml").write_text(settings)
        try:
            async with proxy_to(temporal.address) as proxy:
                hosts = [TorturedHost(at, folder, proxy.address, Random(at)) for at in (1, 2)]
                async with _serving(temporal, proxy, hosts, folder, records) as scene:
                    yield scene
        finally:
            temporal.stop()


@asynccontextmanager
async def _serving(
    temporal: TemporalProcess, proxy: TemporalProxy, hosts: list[TorturedHost], folder: Path, records: Records
) -> AsyncGenerator[FaultScene]:
    async def port() -> int:
        await until(lambda: any(host.url for host in hosts), seconds=SECONDS)
        return int(next(host.url for host in hosts if host.url).rpartition(":")[2])

    guests = GuestLines(folder / "data" / "guests")
    keeping = [asyncio.create_task(guests.watch()), *(asyncio.create_task(host.keep()) for host in hosts)]
    try:
        async with (
            tcp_line(port) as (http, url),
            httpx.AsyncClient(trust_env=False, timeout=httpx.Timeout(10)) as client,
        ):

            async def where() -> str:
                return url

            scene = FaultScene(temporal, proxy, hosts, http, guests, records, Client(where, client))
            await scene.all_there()
            yield scene
    finally:
        await asyncio.gather(*(host.close() for host in hosts))
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
