"""Two versions of hosts on one queue: work is where Temporal was told to send it; threads move over while they live."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypedDict
from uuid import uuid4

import httpx
import pytest
from langgraph.graph import START, StateGraph
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, host_of
from tests.flow.serving import NEVER, endings, seconds_to_end
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = [pytest.mark.flow, pytest.mark.timeout(180)]

OFTEN = {
    "AGENTVISOR_TEMPORAL_COMPACT_EVENTS": "100",
    "AGENTVISOR_TEMPORAL_FOLD_THRESHOLD": "4KiB",
    "AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT": "5s",
}


class Told(TypedDict):
    told: str


told = StateGraph(Told).add_node("tell", lambda _: {"told": "by a client"}).add_edge(START, "tell")


class Versions:
    """Hosts of one deployment, and what an operator types."""

    def __init__(self, project: Project) -> None:
        project.names = {"graph": "victims.py:make"}
        self.project = project
        self.name = f"agents-{uuid4().hex[:8]}"

    def launch(self, build_id: str, **environment: str) -> HostProcess:
        return self.project.new_host(
            NEVER | OFTEN | self.variables(build_id) | environment, command="serve", FOLDER=str(self.project.folder)
        ).launch()

    def variables(self, build_id: str) -> dict[str, str]:
        return {
            "AGENTVISOR_TEMPORAL_DEPLOYMENT_NAME": self.name,
            "AGENTVISOR_TEMPORAL_DEPLOYMENT_BUILD_ID": build_id,
        }

    def type(self, *command: str, code: int = 0) -> str:
        typed = subprocess.run(
            [sys.executable, "-m", "agentvisor.cli.main", *command],
            cwd=self.project.folder,
            # Where Temporal is, Temporal's own configuration says, as it does to hosts.
            env={**os.environ, "TEMPORAL_ADDRESS": self.project.temporal} | self.variables("typed"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert typed.returncode == code, typed.stderr
        return typed.stdout if code == 0 else typed.stderr

    def promote(self, *what: str) -> None:
        self.type("deployment", "promote", *what)

    def roles(self) -> dict[str, str]:
        return {build: role for role, build, *_ in map(str.split, self.type("deployment", "show").splitlines())}

    def thread(self, host: HostProcess) -> VictimThread:
        return VictimThread(self.project, host)


@contextmanager
def versions_of(project: Project) -> Generator[Versions]:
    try:
        yield Versions(project)
    finally:
        for host in project.hosts:
            host.kill()


def readiness(host: HostProcess) -> tuple[int, str]:
    answer = httpx.get(f"{host.url}/readyz")
    return answer.status_code, answer.json().get("reason", "")


def runs_at(versions: Versions, host: HostProcess) -> HostProcess:
    """Where a run goes that this host was asked for."""
    thread = versions.thread(host)
    run = thread.graph("tools", {"wanted": 1})
    assert thread.ended(run)["status"] == "success"
    return by_id(versions, thread.run(run)["attempts"][-1]["host_id"])


def by_id(versions: Versions, host_id: str) -> HostProcess:
    # A host's id is its machine, its process and a word.
    return next(one for one in versions.project.hosts if f"-{one.pid}-" in host_id)


def test_threads_move_to_a_version_when_it_is_made_current_and_back_and_its_hosts_outlive_the_old_ones(
    zygote_project: Project,
) -> None:
    with versions_of(zygote_project) as versions:
        starting = [versions.launch("1"), versions.launch("2")]
        first, second = (one.ready() for one in starting)
        # Until somebody says which of them it is, neither would do what it is asked for, and both say so.
        until(lambda: [readiness(one) for one in (first, second)] == [(503, "version_not_current")] * 2)
        until(lambda: "agentvisor deployment promote" in first.log.read_text())
        assert httpx.get(f"{first.url}/livez").status_code == 200
        assert versions.roles() == {"1": "inactive", "2": "inactive"}

        versions.promote("1")
        until(lambda: readiness(first) == (200, ""))
        assert readiness(second) == (503, "version_not_current"), second.log.read_text()
        assert runs_at(versions, second) is first

        # Its process is on the first host when the second version takes the thread over, compactions and all.
        thread = versions.thread(second)
        run = thread.graph("tools", {"wanted": 60, "seconds": 0.05, "gates": [3, 40]})
        assert host_of(zygote_project, thread.until_it("began 3")) is first
        versions.promote("2")
        until(lambda: readiness(second) == (200, ""))
        assert readiness(first) == (200, "")  # it has runs, and answers as before
        assert versions.roles() == {"1": "draining", "2": "current"}
        assert runs_at(versions, first) is second
        thread.tell("gate 3")
        assert host_of(zygote_project, thread.until_it("began 40")) is first

        # A share of the threads, here all, goes back in a moment; and none again.
        versions.promote("1", "--percentage", "100")
        assert "1  100 %" in versions.type("deployment", "show")
        assert runs_at(versions, second) is first
        versions.promote("1", "--percentage", "0")
        assert runs_at(versions, first) is second
        # What one host alone can take has no version: a client's session at the host of the old one.
        other = uuid4().hex
        graph = told.compile(checkpointer=AgentVisorCheckpointer(endpoint=first.url))
        graph.invoke({"told": ""}, {"configurable": {"thread_id": other}})
        assert VictimThread(zygote_project, second, other).values() == {"told": "by a client"}

        thread.on(second)
        first.tell(signal.SIGTERM)
        thread.tell("gate 40")
        seconds_to_end(first, 40)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"]), thread.told()
        assert by_id(versions, ended["attempts"][-1]["host_id"]) is second
        assert thread.did() == {f"{what} {number}": 1 for number in range(1, 61) for what in ("began", "ended")}
        # With the old hosts gone, the new ones serve everything that was begun by them: threads, and the store.
        again = thread.graph("tools", {"wanted": 61})
        assert thread.ended(again)["status"] == "success"
        thread.client.store.put_item(["versions"], "key", {"stored": "by the second"})
        assert thread.client.store.get_item(["versions"], "key")["value"] == {"stored": "by the second"}


@pytest.mark.slow
def test_what_cannot_be_made_current_is_said_to_be_none(zygote_project: Project) -> None:
    with versions_of(zygote_project) as versions:
        assert "no host of deployment" in versions.type("deployment", "show")
        assert "start a host of it first" in versions.type("deployment", "promote", "never", code=3)
        assert "no percentage" in versions.type("deployment", "promote", "1", "--percentage", "101", code=2)
        host = versions.launch("1").ready()
        versions.promote("1")
        assert "unknown" not in versions.roles().values()
        assert "start a host of it first" in versions.type("deployment", "promote", "2", code=3)
        assert runs_at(versions, host) is host
        # Out of versioning again: a host without a version gets the work. Until it does, no update counts it as ready.
        plain = versions.project.new_host(NEVER, command="serve", FOLDER=str(versions.project.folder)).start()
        assert readiness(plain) == (503, "version_not_current")
        assert "agentvisor deployment promote" in plain.log.read_text()
        assert runs_at(versions, plain) is host
        versions.promote("unversioned")
        until(lambda: readiness(plain) == (200, ""))
        assert readiness(host) == (200, "")
        assert runs_at(versions, host) is plain
        # And on, as for a deployment that had no versions so far: what is alive goes on, and threads move.
        thread = versions.thread(plain)
        run = thread.graph("tools", {"wanted": 3, "gates": [1]})
        assert host_of(zygote_project, thread.until_it("began 1")) is plain
        versions.promote("1")
        until(lambda: runs_at(versions, plain) is host)
        thread.on(host)
        plain.tell(signal.SIGTERM)
        thread.tell("gate 1")
        seconds_to_end(plain, 40)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"]), thread.told()
        assert by_id(versions, ended["attempts"][-1]["host_id"]) is host
        thread.client.store.put_item(["versions"], "plain", {"stored": "after it"})
        assert thread.client.store.get_item(["versions"], "plain")["value"] == {"stored": "after it"}
