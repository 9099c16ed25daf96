"""Whatever is killed, nothing that an agent started is left alive: children, processes that ignore signals, daemons."""

import contextlib
import os
import signal

import psutil
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, kill, victim_host, warm_by_default
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow

GONE_SECONDS = 15.0
"""Within a few seconds, but the machine may be busy."""


class Family:
    """An agent that waits, with all that it has started, and the processes that it comes from."""

    def __init__(self, thread: VictimThread) -> None:
        self.run = thread.call("families:raise_one")
        until(lambda: any(what.startswith("raised ") for what in thread.did()), seconds=30)
        (raised,) = [one for one in thread.effects() if str(one["what"]).startswith("raised ")]
        self.agent = psutil.Process(int(raised["pid"]))
        self.zygote, self.supervisor, *_ = self.agent.parents()
        started = [psutil.Process(int(pid)) for pid in str(raised["what"]).split()[1:]]
        assert len(started) == 3
        self.members = {self.agent, *started, *self.agent.children(recursive=True)}
        assert all(one.is_running() for one in self.members)


def until_gone(processes: set[psutil.Process]) -> None:
    """Return when all are dead; who is not, is named."""

    def left() -> list[psutil.Process]:
        return [one for one in processes if one.is_running() and _status(one) != psutil.STATUS_ZOMBIE]

    try:
        until(lambda: not left(), seconds=GONE_SECONDS)
    except AssertionError:
        survivors = left()
        for one in survivors:
            one.kill()
        raise AssertionError(f"left alive: {survivors}") from None


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def everything_under(pid: int) -> set[psutil.Process]:
    process = psutil.Process(pid)
    return {process, *process.children(recursive=True)}


# --- while the host lives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["agent", "zygote", "supervisor"])
def test_nothing_is_left_of_an_agent_when_it_or_its_guest_is_killed(victims: Project, victim: str) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    family = Family(thread)
    killed: psutil.Process = getattr(family, victim)
    kill(killed.pid)
    until_gone({killed, *family.members})
    thread.tell("gate")
    run = thread.ended(family.run)
    assert run["status"] == "success"
    assert [one["ending"] for one in run["attempts"]] == [
        "agent_signal" if victim == "agent" else "guest_gone",
        "completed",
    ]


@warm_by_default
def test_nothing_is_left_of_a_run_that_was_cancelled(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    family = Family(thread)
    thread.client.runs.cancel(thread.id, family.run)
    until_gone(family.members)
    assert thread.ended(family.run)["status"] == "interrupted"


@warm_by_default
def test_nothing_is_left_of_an_agent_that_has_ended(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    thread.tell("gate")
    assert thread.ended(thread.call("families:raise_one"))["status"] == "success"
    (raised,) = [what for what in thread.did() if what.startswith("raised ")]
    assert not any(psutil.pid_exists(int(pid)) for pid in raised.split()[1:])


# --- the host itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.parametrize("start_method", ["exec"])
def test_nothing_is_left_of_a_host(project: Project, number: signal.Signals) -> None:
    host = victim_host(project, agent="call")
    family = Family(VictimThread(project, host))
    everything = everything_under(host.pid) | family.members
    kill(host.pid, number)
    until_gone(everything)


def test_nothing_is_left_of_a_host_whose_supervisor_was_killed_with_it(zygote_project: Project) -> None:
    host = victim_host(zygote_project, agent="call")
    family = Family(VictimThread(zygote_project, host))
    everything = everything_under(host.pid) | family.members
    kill(host.pid, signal.SIGSTOP)
    kill(family.supervisor.pid)
    kill(host.pid)
    until_gone(everything)


def press(process: HostProcess, number: signal.Signals) -> None:
    """As a terminal does with Ctrl-C: the signal goes to the whole group in the foreground."""
    os.killpg(process.pid, number)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_host_with_its_own_temporal(zygote_project: Project, number: signal.Signals) -> None:
    host = victim_host(zygote_project, agent="call", own_temporal=True)
    family = Family(VictimThread(zygote_project, host))
    everything = everything_under(host.pid) | family.members
    assert "temporal" in {one.name() for one in everything}
    press(host, number)
    until_gone(everything)


def test_what_is_left_when_all_guards_are_killed_at_once_is_ended_by_the_next_host(zygote_project: Project) -> None:
    host = victim_host(zygote_project, agent="call")
    family = Family(VictimThread(zygote_project, host))
    guards = [host.pid, family.supervisor.pid, family.zygote.pid]
    for pid in guards:
        kill(pid, signal.SIGSTOP)
    for pid in guards:
        kill(pid)
    # Of what hid its environment nobody can tell whose it was: a sandbox is for that.
    hidden = {one for one in family.members if one.is_running() and not _environment(one)}
    victim_host(zygote_project, agent="call")
    until_gone(family.members - hidden)
    for one in hidden:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}
