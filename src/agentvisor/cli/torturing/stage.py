"""The servers of a torture: Temporal, and hosts that are started again whenever they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from agentvisor.core.errors import Unavailable
from agentvisor.host import leash
from agentvisor.host.temporal_server import EmbeddedTemporal

_READY_SECONDS = 60.0
_END_SECONDS = 30.0
_START_AGAIN = 0.5
"""Seconds after a host that did not start: Temporal may be down."""


class TorturedHost:
    """One place for a host: whoever is killed there is followed by another."""

    def __init__(self, number: int, folder: Path, temporal: str, chance: Random) -> None:
        self.number = number
        self.url = ""
        """Where it listens; empty while there is none."""
        self.starts = 0
        self.frozen = False
        self._folder = folder
        self._temporal = temporal
        self._chance = chance
        self._process: asyncio.subprocess.Process | None = None
        self._closing = False

    @property
    def pid(self) -> int:
        """Of the process that is there now; 0 while there is none."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def keep(self) -> None:
        """Have a host here until `end`."""
        while not self._closing:
            if await self._start() and self._process is not None:
                await self._process.wait()
                self.url = ""
                await asyncio.sleep(self._chance.uniform(0, 1.5))
            else:
                await self.end(signal.SIGKILL)
                await asyncio.sleep(_START_AGAIN)

    async def close(self) -> None:
        """Be the last: stop it as an operator does, and wait until it is gone."""
        self._closing = True
        await self.end(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def end(self, number: signal.Signals) -> None:
        """Send it the signal and wait for its end."""
        self.url = ""
        if self._process is None:
            return
        self.send(number)
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self._process.wait()

    async def _start(self) -> bool:
        """Whether one is ready now."""
        command = [sys.executable, "-m", "agentvisor.cli.main", "serve", "--port", str(free_port())]
        command += ["--temporal-address", self._temporal, "--config", str(self._folder / "agentvisor.yaml")]
        with (self._folder / f"host-{self.number}.log").open("ab") as log:
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", leash.__file__, str(os.getpid())),
                *command,
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for the torture, which ends it all in order.
                start_new_session=True,
            )
        if process.stdout is None:
            return False
        self.starts += 1
        try:
            line = (await asyncio.wait_for(process.stdout.readline(), _READY_SECONDS)).decode().strip()
        except TimeoutError:
            return False
        if "ready at" not in line or self._closing:
            return False
        self.url = line.rpartition(" ")[2]
        return True


class Stage:
    """All servers, while `open_stage` lasts."""

    def __init__(self, server: EmbeddedTemporal, hosts: list[TorturedHost], chance: Random) -> None:
        self.server = server
        self.hosts = hosts
        self._chance = chance

    async def url(self) -> str:
        """A host that listens, any of them; waits until there is one."""
        while True:
            if up := [host.url for host in self.hosts if host.url]:
                return self._chance.choice(up)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def open_stage(folder: Path, *, hosts: int, chance: Random) -> AsyncGenerator[Stage]:
    """Start everything; at the end nothing of it is left."""
    async with EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port()) as server:
        # Each has a chance of its own: what one draws must not depend on how busy the machine is.
        kept = [TorturedHost(at, folder, server.address, Random(chance.random())) for at in range(1, hosts + 1)]  # noqa: S311
        keeping = [asyncio.create_task(host.keep(), name=f"host {host.number}") for host in kept]
        try:
            stage = Stage(server, kept, chance)
            await _ready(stage, folder)
            yield stage
        finally:
            await asyncio.gather(*(host.close() for host in kept))
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)


async def _ready(stage: Stage, folder: Path) -> None:
    try:
        await asyncio.wait_for(stage.url(), _READY_SECONDS)
    except TimeoutError:
        raise Unavailable(f"no host started in {_READY_SECONDS:.0f} s: {folder / 'host-1.log'} says why") from None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
