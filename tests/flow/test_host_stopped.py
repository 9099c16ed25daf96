"""A host is told to stop: its runs go on at another, nothing of them is done twice, and no restart is counted."""

import operator
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Self, TypedDict
from uuid import uuid4

import httpx
import pytest
from langgraph.graph import END, START, StateGraph
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, victim_host
from tests.flow.serving import EXIT_SECONDS, deployment, endings, seconds_to_end
from tests.support.host_process import HostProcess
from tests.support.waiting_sync import until

from agentvisor.langgraph import AgentVisorCheckpointer

pytestmark = pytest.mark.flow


class Balancer:
    """What stands before hosts in production: passes requests to one that says that it takes work."""

    def __init__(self, hosts: list[HostProcess]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host = next(one for one in hosts if _is_ready(one.url))
                answer = httpx.get(f"{host.url}{self.path}")
                self.send_response(answer.status_code)
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def lasted(attempt: dict[str, str]) -> float:
    """Seconds, by Temporal's clock."""
    began, ended = (datetime.fromisoformat(attempt[name]) for name in ("started_at", "ended_at"))
    return (ended - began).total_seconds()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ok").status_code == 200
    except httpx.HTTPError:
        return False


def each_once(did: dict[str, int], count: int) -> None:
    """Each of so many tools began once and ended once."""
    assert did == {f"{what} {number}": 1 for number in range(1, count + 1) for what in ("began", "ended")}


def test_a_tool_of_five_seconds_runs_once_though_its_host_is_told_to_stop_in_the_middle(
    zygote_project: Project,
) -> None:
    with deployment(zygote_project) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 3, "seconds": 5, "gates": []})
        victim = hosts.host_of(thread.until_it("began 2"))
        hosts.stop(victim, thread)
        # It works on, and its host waits for it: the next tool begins elsewhere.
        second = hosts.host_of(thread.until_it("began 3"))
        assert second is not victim
        seconds_to_end(victim)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
        each_once(thread.did(), 3)


def test_a_run_stops_at_its_breakpoint_though_it_is_given_to_another_host_there(zygote_project: Project) -> None:
    with deployment(zygote_project) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 3, "gates": [1]}, interrupt_after=["tool"])
        victim = hosts.host_of(thread.until_it("began 1"))
        hosts.stop(victim, thread)
        until(lambda: "host_stopping" in victim.log.read_text())
        thread.tell("gate 1")
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "paused"])
        each_once(thread.did(), 1)
        assert (thread.status(), thread.client.threads.get_state(thread.id)["next"]) == ("interrupted", ["tool"])


@pytest.mark.parametrize("durability", ["async", pytest.param("exit", marks=pytest.mark.slow)])
def test_a_run_that_does_not_wait_for_its_checkpoints_makes_way_between_two_steps(
    zygote_project: Project, durability: str
) -> None:
    with deployment(zygote_project) as hosts:
        threads = [hosts.thread() for _ in range(3)]
        runs = [one.graph("tools", {"wanted": 12, "seconds": 0.5}, durability=durability) for one in threads]
        victim = hosts.host_of(threads[0].until_it("began 4"))
        for one in threads[1:]:
            one.until_it("began 3")
        hosts.stop(victim, *threads)
        seconds_to_end(victim)
        for one, run in zip(threads, runs, strict=True):
            ended = one.ended(run)
            assert (ended["status"], set(endings(ended))) == ("success", {*endings(ended)[:-1], "completed"})
            each_once(one.did(), 12)
        assert endings(threads[0].run(runs[0])) == ["host_stopped", "completed"]


@pytest.mark.parametrize("durability", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_a_graph_inside_a_tool_that_keeps_nothing_comes_to_its_end_first(
    zygote_project: Project, durability: str
) -> None:
    with deployment(zygote_project) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools:calling", {"wanted": 6, "seconds": 0.5}, durability=durability)
        victim = hosts.host_of(thread.until_it("began 2"))
        hosts.stop(victim, thread)
        seconds_to_end(victim)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
        each_once(thread.did(), 7)


def test_all_runs_of_a_host_go_on_elsewhere(zygote_project: Project) -> None:
    with deployment(zygote_project, hosts=1) as hosts:
        threads = [hosts.thread() for _ in range(5)]
        runs = [thread.graph("tools", {"wanted": 9, "gates": [2]}) for thread in threads]
        for thread in threads:
            thread.until_it("began 2")
        (victim,) = hosts.hosts
        hosts.grow()
        hosts.stop(victim, *threads)
        for thread in threads:
            thread.tell("gate 2")
        assert seconds_to_end(victim) < EXIT_SECONDS
        for thread, run in zip(threads, runs, strict=True):
            ended = thread.ended(run, seconds=60)
            assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
            each_once(thread.did(), 9)


def test_a_run_that_comes_to_no_boundary_is_given_back_at_the_end_of_the_drain(zygote_project: Project) -> None:
    with deployment(zygote_project, agents=("graph", "call"), TEMPORAL_DRAIN_TIMEOUT="2s") as hosts:
        stuck = hosts.thread()
        run = stuck.graph("tools", {"wanted": 3, "gates": [2]})
        victim = hosts.host_of(stuck.until_it("began 2"))
        stuck.on(hosts.others(victim))
        hosts.stop(victim, stuck)
        took = seconds_to_end(victim)
        assert took >= 1.5
        stuck.until_it("began 2", 2)
        stuck.tell("gate 2")
        ended = stuck.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
        # What was done stays done; what was under way is begun again, and ends once.
        assert stuck.did() == {
            "began 1": 1, "ended 1": 1, "began 2": 2, "ended 2": 1, "began 3": 1, "ended 3": 1,
        }  # fmt: skip


def test_a_plain_function_has_the_drain_to_come_to_its_end(zygote_project: Project) -> None:
    with deployment(zygote_project, agents=("call",), TEMPORAL_DRAIN_TIMEOUT="4s") as hosts:
        quick, stuck = hosts.thread(), hosts.thread()
        runs = [quick.call("tools:function", {"seconds": 2}), stuck.call("tools:function", {"gated": True})]
        one = hosts.host_of(quick.until_it("began function"))
        other = hosts.host_of(stuck.until_it("began function"))
        hosts.grow()
        for victim in {one, other}:
            hosts.stop(victim, quick, stuck)
        for victim in {one, other}:
            seconds_to_end(victim)
        ended = quick.ended(runs[0])
        assert (ended["status"], endings(ended)) == ("success", ["completed"])
        stuck.until_it("began function", 2)
        stuck.tell("gate function")
        ended = stuck.ended(runs[1])
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
        assert quick.did()["began function"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_second_signal_ends_the_drain(zygote_project: Project, number: signal.Signals) -> None:
    with deployment(zygote_project) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 2, "gates": [1]})
        victim = hosts.host_of(thread.until_it("began 1"))
        hosts.stop(victim, thread)
        until(lambda: "host_stopping" in victim.log.read_text())
        victim.tell(number)
        seconds_to_end(victim)
        thread.until_it("began 1", 2)
        thread.tell("gate 1")
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])


def test_runs_that_are_starting_when_their_host_is_told_to_stop_cost_no_restart(zygote_project: Project) -> None:
    with deployment(zygote_project, hosts=1) as hosts:
        (victim,) = hosts.hosts
        # Its guest is not warm yet, so that attempts wait for it.
        threads = [hosts.thread() for _ in range(6)]
        runs = [thread.graph("tools", {"wanted": 2}) for thread in threads]
        victim.tell(signal.SIGTERM)
        seconds_to_end(victim)
        hosts.hosts.remove(victim)
        hosts.grow()
        for thread, run in zip(threads, runs, strict=True):
            thread.on(hosts.hosts[0])
            ended = thread.ended(run, seconds=60)
            assert ended["status"] == "success", thread.told()
            assert set(endings(ended)[:-1]) <= {"host_stopped"}
            each_once(thread.did(), 2)


def test_a_cancel_during_the_drain_ends_the_run(zygote_project: Project) -> None:
    with deployment(zygote_project) as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 2, "gates": [1]})
        victim = hosts.host_of(thread.until_it("began 1"))
        hosts.stop(victim, thread)
        until(lambda: "host_stopping" in victim.log.read_text())
        thread.client.runs.cancel(thread.id, run)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("interrupted", ["cancelled"])
        assert seconds_to_end(victim) < EXIT_SECONDS
        assert thread.did() == {"began 1": 1}


def test_the_time_budget_goes_on_across_a_hand_over(zygote_project: Project) -> None:
    with deployment(zygote_project, TEMPORAL_RUN_TIMEOUT="6s") as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 100, "seconds": 0.5})
        victim = hosts.host_of(thread.until_it("began 6"))
        hosts.stop(victim, thread)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("timeout", ["host_stopped", "time_budget"])
        # What the first had used of it, the second had no more.
        assert lasted(ended["attempts"][1]) < 6


def test_the_time_budget_ends_a_run_during_the_drain(zygote_project: Project) -> None:
    with deployment(zygote_project, TEMPORAL_RUN_TIMEOUT="4s") as hosts:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 1, "gates": [1]})
        victim = hosts.host_of(thread.until_it("began 1"))
        hosts.stop(victim, thread)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("timeout", ["time_budget"])
        seconds_to_end(victim)


def test_a_run_that_only_a_subgraph_takes_further_is_given_back_there_in_the_second_half(
    zygote_project: Project,
) -> None:
    with deployment(zygote_project, TEMPORAL_DRAIN_TIMEOUT="4s") as hosts:
        thread = hosts.thread()
        run = thread.graph("tools:nested", {"wanted": 12, "seconds": 0.7})
        victim = hosts.host_of(thread.until_it("began 2"))
        hosts.stop(victim, thread)
        seconds_to_end(victim)
        ended = thread.ended(run)
        assert (ended["status"], endings(ended)) == ("success", ["host_stopped", "completed"])
        each_once(thread.did(), 12)


class Counted(TypedDict, total=False):
    done: Annotated[list[int], operator.add]


def notebook(endpoint: str, began: list[int], steps: int) -> Any:
    """A graph of a client outside, whose steps take 0.1 s."""

    def step(state: Counted) -> Counted:
        number = len(state.get("done", [])) + 1
        began.append(number)
        time.sleep(0.1)
        return {"done": [number]}

    builder = StateGraph(Counted)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if len(state["done"]) < steps else END)
    return builder.compile(checkpointer=AgentVisorCheckpointer(endpoint=endpoint)).with_config(recursion_limit=1000)


def test_a_client_outside_goes_on_with_another_host_while_its_own_is_draining(zygote_project: Project) -> None:
    with deployment(zygote_project) as hosts, ThreadPoolExecutor(1) as pool:
        thread = hosts.thread()
        run = thread.graph("tools", {"wanted": 1, "gates": [1]})
        victim = hosts.host_of(thread.until_it("began 1"))
        began: list[int] = []
        config: Any = {"configurable": {"thread_id": str(uuid4())}}
        with Balancer([victim, hosts.others(victim)]) as balancer:
            working = pool.submit(notebook(balancer.url, began, 40).invoke, {}, config)
            until(lambda: len(began) > 10)
            hosts.stop(victim, thread)
            until(lambda: not _is_ready(victim.url))
            assert working.result(timeout=60)["done"] == list(range(1, 41))
            assert began == list(range(1, 41))
            # Its host is still there, for the run's sake.
            assert httpx.get(f"{victim.url}/ok").json() == {"ok": False, "stopping": True}
        thread.tell("gate 1")
        assert thread.ended(run)["status"] == "success"
        seconds_to_end(victim)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_dev_ends_at_once_whatever_runs_and_whoever_reads(zygote_project: Project, number: signal.Signals) -> None:
    zygote_project.temporal = ""
    host = victim_host(zygote_project, own_temporal=True)
    thread = VictimThread(zygote_project, host)
    run = thread.graph("tools", {"wanted": 1, "gates": [1]})
    thread.until_it("began 1")
    with (
        httpx.Client(timeout=60) as client,
        client.stream("GET", f"{host.url}/threads/{thread.id}/runs/{run}/stream") as reading,
    ):
        lines = reading.iter_lines()
        next(lines)
        began = time.monotonic()
        os.killpg(host.pid, number)
        assert host.until_ended(EXIT_SECONDS) == 0
        took = time.monotonic() - began
        # Not as if the run had come to its end.
        with pytest.raises(httpx.HTTPError):
            list(lines)
    assert took < EXIT_SECONDS / 2
