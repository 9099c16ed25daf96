"""What a test of death needs: a thread on a host, what its agents did outside of it, and the processes around them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from functools import cached_property
from itertools import pairwise
from typing import Any, cast
from uuid import uuid4

import httpx
import psutil
import pytest
from tests.flow.conftest import Project, client_of
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.testing.faults import JOURNALLED, Fault
from agentvisor.testing.host import Host
from agentvisor.testing.record import Operation
from agentvisor.testing.thread import Thread

VICTIMS = {"graph": "victims.py:make", "call": "victims.py:function"}
SECONDS = 30.0
"""For what takes one or two when the machine is not busy."""

AT_A_TIME = 4
"""Threads whose agents die at the same time; with more, a busy machine starves the host's heartbeats."""

warm_by_default = pytest.mark.parametrize("start_method", ["zygote", pytest.param("exec", marks=pytest.mark.slow)])
"""For tests in which it matters little how an agent's process starts: an interpreter from nothing takes its time."""


class VictimThread:
    """A thread whose agents die: `graph` and `call` start runs, the rest says what became of them."""

    def __init__(self, project: Project, host: HostProcess | Host, thread_id: str = "") -> None:
        self.project = project
        self.id = thread_id or uuid4().hex
        self.on(host)
        self.client.threads.create(thread_id=self.id, if_exists="do_nothing")

    def on(self, host: HostProcess | Host) -> None:
        """Speak with this host from now on."""
        self.host = host
        self.client = client_of(host)

    # --- runs ------------------------------------------------------------------------------------------------------

    def graph(self, name: str, given: dict[str, Any] | None, **options: Any) -> str:
        """Start a run of the graph of a module in `agents/`; its id."""
        config = {"configurable": {"graph": name}}
        run = self.client.runs.create(self.id, "graph", input=given, config=config, **options)
        return str(run["run_id"])

    def call(self, name: str, given: object = None) -> str:
        """Start a run of a function in `agents/`: "module:name"; its id."""
        run = self.client.runs.create(self.id, "call", input={"call": name, "with": given})
        return str(run["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        return dict(self.client.runs.get(self.id, run_id))

    def ended(self, run_id: str, *, seconds: float = SECONDS) -> dict[str, Any]:
        """The run, once it has ended; whatever does not answer meanwhile is being restarted."""
        found: list[dict[str, Any]] = []

        def has_ended() -> bool:
            try:
                run = self.run(run_id)
            except httpx.HTTPError:
                return False
            found.append(run)
            return run["status"] not in ("pending", "running")

        try:
            # Each look is work for the host, which has an agent to restart.
            until(has_ended, seconds=seconds, pause=0.1)
        except AssertionError as error:
            raise AssertionError(f"run {run_id}: {error}; {self.told()}") from error
        check_attempts(found[-1])
        return found[-1]

    def reasons(self, run_id: str) -> list[str]:
        """Why each attempt ended."""
        return [one["reason"] for one in self.run(run_id)["attempts"]]

    def history(self) -> list[dict[str, Any]]:
        return [dict(one) for one in self.client.threads.get_history(self.id, limit=1000)]

    def values(self) -> dict[str, Any]:
        return dict(self.client.threads.get_state(self.id)["values"])  # type: ignore[arg-type]

    def status(self) -> str:
        return str(self.client.threads.get(self.id)["status"])

    # --- on a host that agentvisor.testing has started ---------------------------------------------------------------

    def inject(self, *faults: Fault) -> None:
        """Let these happen to this thread's agents, from now on."""
        self._tested.inject(*faults)

    def acknowledged(self) -> list[Operation]:
        """The journalled operations that the host acknowledged so far."""
        return [one for one in self._tested.operations if one.when == "after" and one.name in JOURNALLED]

    @cached_property
    def _tested(self) -> Thread:
        assert isinstance(self.host, Host)
        return self.host.thread(self.id)

    # --- outside ---------------------------------------------------------------------------------------------------

    def tell(self, name: str, text: str = "") -> None:
        """Put a sign up for this thread's agents (agents/signs.py)."""
        (self.project.folder / f"{self.id}.{name}").write_text(text)

    def untell(self, name: str) -> None:
        """Take a sign down."""
        (self.project.folder / f"{self.id}.{name}").unlink()

    def effects(self) -> list[dict[str, Any]]:
        return [one for one in self.project.effects() if one["thread"] == self.id]

    def did(self) -> Counter[str]:
        return Counter(str(one["what"]) for one in self.effects())

    def did_in_attempt(self, attempt: int) -> set[str]:
        return {str(one["what"]) for one in self.effects() if one["attempt"] == attempt}

    def attempts(self, prefix: str) -> dict[str, list[int]]:
        """For what follows a prefix: the attempts in which that was done."""
        found: dict[str, list[int]] = {}
        for one in self.effects():
            if str(one["what"]).startswith(prefix):
                found.setdefault(str(one["what"]).removeprefix(prefix), []).append(int(one["attempt"]))
        return found

    def stored(self) -> set[str]:
        """The checkpoints that were acknowledged to the thread's agents."""
        said = [what.removeprefix("stored ") for what in self.did() if what.startswith("stored ")]
        return {one for one in said if not one.startswith("step ")}

    def until_it(self, what: str, times: int = 1) -> int:
        """Wait until the thread's agents did something so often; the process of the last one."""
        try:
            until(lambda: self.did()[what] >= times, seconds=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{what} x {times}: {error}; {self.told()}") from error
        return [int(one["pid"]) for one in self.effects() if one["what"] == what][-1]

    def told(self) -> str:
        """All that helps to understand a failure."""
        logs = [line for host in self.project.hosts for line in host.log.read_text().splitlines() if self.id in line]
        return "\n".join([f"did {dict(self.did())}", *logs[-30:]])


def victim_host(
    project: Project, environment: dict[str, str] | None = None, *, agent: str = "graph", own_temporal: bool = False
) -> HostProcess:
    """A host of the test's own, for it to kill; it has one agent, since each takes its time to be ready."""
    project.names = {agent: VICTIMS[agent]}
    project.temporal = "" if own_temporal else project.temporal
    return project.host(environment, FOLDER=str(project.folder))


def written(operation: Operation) -> list[str]:
    """The channels that it wrote pending writes to."""
    return [str(channel) for channel in cast("list[object]", operation.about.get("channels", []))]


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """Whether a process is there, dead ones that nobody has collected aside."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def host_of(project: Project, pid: int) -> HostProcess:
    """The host in whose family a process is."""
    family = {one.pid for one in psutil.Process(pid).parents()}
    return next(host for host in project.hosts if host.pid in family)


def is_one_line(history: list[dict[str, Any]]) -> bool:
    """Whether each checkpoint is the parent of the next: no fork."""
    parents = [one["parent_checkpoint"]["checkpoint_id"] for one in history[:-1]]
    return parents == [one["checkpoint"]["checkpoint_id"] for one in history[1:]]


def check_attempts(run: dict[str, Any]) -> None:
    """Fail unless a run that has ended says of each attempt when and where it was, how it ended, and why."""
    attempts = run["attempts"]
    assert [one["attempt"] for one in attempts] == list(range(1, len(attempts) + 1))
    for one in attempts:
        assert one["scheduled_at"] <= one["ended_at"], one
        assert one["ending"], one
        assert one["reason"], one
        # Neither is known of an attempt of which nothing was ever heard.
        assert (one["started_at"] is None) == (one["host_id"] is None), one
        assert one["started_at"] is None or one["scheduled_at"] <= one["started_at"] <= one["ended_at"], one
    assert all(a["scheduled_at"] <= b["scheduled_at"] for a, b in pairwise(attempts)), attempts
    assert (run["error"] is None) == (run["status"] not in ("error", "timeout")), run


def check_steps(thread: VictimThread, run: dict[str, Any], steps: int) -> None:
    """Fail unless a run of agents/steps.py is complete: nothing acknowledged is missing, or was done again."""
    assert run["status"] == "success", run["error"]
    assert thread.values()["done"] == list(range(1, steps + 1))
    history = thread.history()
    assert thread.stored() <= {one["checkpoint"]["checkpoint_id"] for one in history}
    assert is_one_line(history)
    stored = thread.attempts("stored step ")
    assert len(stored) >= steps // 2
    done = thread.attempts("did step ")
    again = {
        number: attempts
        for number, attempts in done.items()
        if number in stored and max(attempts) > min(stored[number])
    }
    assert not again, "steps that were done in a later attempt than the one that was told that they are durable"
