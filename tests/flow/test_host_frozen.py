"""A host that was frozen and replaced can acknowledge nothing when it wakes up; a frozen guest does not wake up."""

import signal
from collections import Counter

import psutil
import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import SECONDS, VictimThread, host_of, is_alive, is_one_line, kill, victim_host
from tests.support.waiting_sync import until

pytestmark = pytest.mark.flow


def acknowledged_to(thread: VictimThread, pid: int) -> Counter[str]:
    """What an agent process heard to be durable."""
    return Counter(one["what"] for one in thread.effects() if one["pid"] == pid and one["what"].startswith("operation"))


@pytest.mark.parametrize(
    "replaced",
    ["while its successor is at work", pytest.param("when its successor has finished", marks=pytest.mark.slow)],
)
def test_a_host_that_was_frozen_and_replaced_acknowledges_nothing(zygote_project: Project, replaced: str) -> None:
    hosts = [victim_host(zygote_project), victim_host(zygote_project)]
    thread = VictimThread(zygote_project, hosts[0])
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    zombie = thread.until_it("began slow")
    frozen = host_of(zygote_project, zombie)
    frozen.freeze()
    thread.on(next(host for host in hosts if host is not frozen))
    # Its agent is awake: it finishes its task now, and waits for that to be acknowledged.
    before = acknowledged_to(thread, zombie)
    thread.tell("gate")
    thread.until_it("did slow")
    thread.untell("gate")
    thread.until_it("began slow", 2)
    if replaced == "while its successor is at work":
        frozen.thaw()
        until(lambda: not is_alive(zombie), seconds=SECONDS)
        thread.tell("gate")
        thread.ended(run)
    else:
        thread.tell("gate")
        thread.ended(run)
        history = thread.history()
        frozen.thaw()
        until(lambda: not is_alive(zombie), seconds=SECONDS)
        assert thread.history() == history
    assert acknowledged_to(thread, zombie) == before
    assert [one["ending"] for one in thread.run(run)["attempts"]] == ["host_gone", "paused"]
    assert is_one_line(thread.history())
    assert sorted(thread.values()["done"]) == ["one", "slow", "two"]
    assert (thread.did()["did one"], thread.did()["did two"]) == (1, 1)
    # The frozen host is as good as any other again.
    thread.on(frozen)
    assert thread.ended(thread.graph("slow_tools", None, command={"resume": "yes"}))["status"] == "success"
    assert thread.did()["answered yes"] == 1


def test_a_guest_that_was_frozen_is_replaced_and_nothing_of_it_is_left(zygote_project: Project) -> None:
    thread = VictimThread(zygote_project, victim_host(zygote_project))
    run = thread.graph("slow_tools", {})
    thread.until_it("operation put_writes", 3)
    pid = thread.until_it("began slow")
    guest = [pid, *(one.pid for one in psutil.Process(pid).parents()[:2])]
    for frozen in guest:
        kill(frozen, signal.SIGSTOP)
    thread.until_it("began slow", 2)
    until(lambda: not any(is_alive(one) for one in guest), seconds=SECONDS)
    thread.tell("gate")
    ended = thread.ended(run)
    # Its heartbeats are missing, and its connection does not answer: whichever is seen first.
    assert [one["ending"] for one in ended["attempts"]] in (["guest_unresponsive", "paused"], ["guest_gone", "paused"])
    assert (thread.did()["did one"], thread.did()["did two"], thread.did()["did slow"]) == (1, 1, 1)
