"""Hosts as in production, several on one Temporal, that are told to stop and are started again."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from contextlib import contextmanager

from tests.flow.conftest import Project
from tests.flow.deaths import VICTIMS, VictimThread, host_of
from tests.support.host_process import HostProcess

NEVER = {"AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS": "0"}
"""Whatever costs a restart is the run's error."""

EXIT_SECONDS = 20.0
"""For a host without runs to end, on a machine that is busy."""


class Deployment:
    """The hosts of one task queue."""

    def __init__(self, project: Project, environment: dict[str, str], agents: tuple[str, ...]) -> None:
        self.project = project
        self.environment = environment
        project.names = {one: VICTIMS[one] for one in agents}
        self.hosts: list[HostProcess] = []

    def grow(self, count: int = 1) -> list[HostProcess]:
        """Start more hosts, at the same time; return when all are ready."""
        new = [
            self.project.new_host(self.environment, command="serve", FOLDER=str(self.project.folder)).launch()
            for _ in range(count)
        ]
        self.hosts += [one.ready() for one in new]
        return new

    def thread(self, thread_id: str = "") -> VictimThread:
        return VictimThread(self.project, self.hosts[0], thread_id)

    def host_of(self, pid: int) -> HostProcess:
        return host_of(self.project, pid)

    def others(self, host: HostProcess) -> HostProcess:
        return next(one for one in self.hosts if one is not host)

    def stop(self, host: HostProcess, *threads: VictimThread) -> None:
        """Tell a host to stop; these threads are spoken to through another from now on."""
        self.hosts.remove(host)
        for thread in threads:
            thread.on(self.hosts[0])
        host.tell(signal.SIGTERM)


def seconds_to_end(host: HostProcess, most: float = EXIT_SECONDS) -> float:
    began = time.monotonic()
    assert host.until_ended(most) == 0
    return time.monotonic() - began


def endings(run: dict[str, object]) -> list[str]:
    attempts = run["attempts"]
    assert isinstance(attempts, list)
    return [one["ending"] for one in attempts]


@contextmanager
def deployment(
    project: Project, *, hosts: int = 2, agents: tuple[str, ...] = ("graph",), **environment: str
) -> Generator[Deployment]:
    """So many hosts, while the context lasts; variables without AGENTVISOR_."""
    given = {f"AGENTVISOR_{name}": value for name, value in environment.items()}
    of = Deployment(project, NEVER | given, agents)
    try:
        of.grow(hosts)
        yield of
    finally:
        for host in of.project.hosts:
            host.kill()
