"""Chooses a victim among the processes of the stage, and does to it what the mix says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from random import Random

import psutil

from agentvisor.cli.torturing.faults import Fault, Mix
from agentvisor.cli.torturing.stage import Stage, TorturedHost

_FROZEN_SECONDS = (1.0, 8.0)
"""Shorter and longer than the heartbeat timeout of the project."""
_NO_VICTIM = 0.1


@dataclass(frozen=True, slots=True)
class Done:
    """A fault that was made."""

    fault: Fault
    at: float
    pid: int
    agents: frozenset[int] = field(default_factory=frozenset[int])
    """Agent processes that were hit by it."""


class Killing:
    """One fault after the other until it is cancelled; `done` tells of them."""

    def __init__(self, stage: Stage, mix: Mix, chance: Random) -> None:
        self.done: list[Done] = []
        self._stage = stage
        self._mix = mix
        self._chance = chance

    async def run(self) -> None:
        async with asyncio.TaskGroup() as freezing:
            fault, pause = self._mix.next_fault(), self._mix.next_pause()
            while True:
                await asyncio.sleep(pause)
                if self._make(fault, freezing):
                    fault, pause = self._mix.next_fault(), self._mix.next_pause()
                else:
                    # It is made as soon as there is a victim: the mix is the seed's.
                    pause = _NO_VICTIM

    def _make(self, fault: Fault, freezing: asyncio.TaskGroup) -> bool:
        """Whether there was somebody to do it to."""
        if fault is Fault.TEMPORAL_KILLED:
            return self._hit(fault, self._stage.server.pid, signal.SIGKILL)
        if fault in (Fault.AGENT_KILLED, Fault.GUEST_KILLED):
            return self._kill_inside(fault)
        host = self._chance.choice(self._stage.hosts)
        if not host.url or host.frozen:
            return False
        if fault is Fault.HOST_FROZEN:
            freezing.create_task(self._freeze(host))
            return True
        number = signal.SIGKILL if fault is Fault.HOST_KILLED else signal.SIGTERM
        return self._hit(fault, host.pid, number, _agents_of(host.pid))

    def _kill_inside(self, fault: Fault) -> bool:
        """An agent of any host; or the guest around it: its supervisor, or the zygote, its agents' parent."""
        agents = sorted(pid for host in self._stage.hosts if host.pid for pid in _agents_of(host.pid))
        if not agents:
            return False
        victim = self._chance.choice(agents)
        if fault is Fault.AGENT_KILLED:
            return self._hit(fault, victim, signal.SIGKILL, frozenset({victim}))
        with contextlib.suppress(psutil.Error):
            zygote, supervisor = psutil.Process(victim).parents()[:2]
            siblings = frozenset(child.pid for child in zygote.children())
            return self._hit(fault, self._chance.choice([zygote.pid, supervisor.pid]), signal.SIGKILL, siblings)
        return False

    async def _freeze(self, host: TorturedHost) -> None:
        pid, host.frozen = host.pid, True
        try:
            self._hit(Fault.HOST_FROZEN, pid, signal.SIGSTOP)
            await asyncio.sleep(self._chance.uniform(*_FROZEN_SECONDS))
        finally:
            host.frozen = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _hit(self, fault: Fault, pid: int, number: signal.Signals, agents: frozenset[int] = frozenset()) -> bool:
        at = time.time()
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        self.done.append(Done(fault, at, pid, agents))
        return True


def _agents_of(host: int) -> frozenset[int]:
    """Agent processes under a host: host, supervisor, zygote, agent."""
    parents: dict[int, int] = {}
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(host).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it may just have ended
                parents[child.pid] = child.ppid()
    zygotes = {pid for pid, parent in parents.items() if parents.get(parent) == host}
    return frozenset(pid for pid, parent in parents.items() if parent in zygotes)
