"""An agent is killed before and after every journalled operation: what was acknowledged is there, once, each time.

The graph has five nodes, three of them side by side; the points are found by an undisturbed run.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread, is_one_line, written

from agentvisor.testing import kill, points
from agentvisor.testing.record import Operation

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

Hosts = Callable[[str], Project]
INPUT = {"given": "x"}
NODES_OF_STEP: dict[object, list[str]] = {1: ["plan"], 2: ["left", "middle", "right"], 3: ["join"]}
"""Done once the checkpoint of that step is stored."""


@dataclass(frozen=True)
class Told:
    """What a run left behind: outside, and in its thread."""

    point: str
    run: dict[str, Any]
    effects: list[dict[str, Any]]
    acknowledged: list[Operation]
    history: list[dict[str, Any]]

    def count(self, what: str) -> int:
        return sum(1 for one in self.effects if one["what"] == what)

    def first_attempt(self, name: str) -> list[Operation]:
        """What the host acknowledged to the attempt that was killed."""
        return [one for one in self.acknowledged if one.attempt == 1 and one.name == name]

    @property
    def shape(self) -> list[tuple[object, ...]]:
        """The history without what differs from run to run; the tasks are those whose writes are there."""
        return [
            (one["metadata"]["step"], one["next"], one["values"], sorted(task["name"] for task in one["tasks"]))
            for one in self.history
        ]

    def problems(self, undisturbed: "Told") -> list[str]:
        """What is wrong, compared with a run that nobody disturbed."""
        endings = [one["ending"] for one in self.run["attempts"]]
        channels = [channel for one in self.first_attempt("put_writes") for channel in written(one)]
        outputs = {channel.removeprefix("out_") for channel in channels if channel.startswith("out_")}
        puts = [one.about for one in self.first_attempt("put")]
        finished = {*outputs, *(name for put in puts for name in NODES_OF_STEP.get(put["step"], []))}
        stored = {str(put["checkpoint_id"]) for put in puts}
        kept = {one["checkpoint"]["checkpoint_id"] for one in self.history}
        unfinished = [
            task["name"]
            for one in self.history[1:]
            for task in one["tasks"]
            if task.get("result") is None and task.get("error") is None
        ]
        found = {
            "status": self.run["status"] != "success",
            f"attempts {endings}": endings != ["agent_signal", "completed"],
            f"shape {self.shape}": self.shape != undisturbed.shape,
            "forked": not is_one_line(self.history),
            f"not once: {[name for name in finished if self.count(f'did {name}') != 1]}": any(
                self.count(f"did {name}") != 1 for name in finished
            ),
            f"lost checkpoints: {stored - kept}": bool(stored - kept),
            f"lost writes of {unfinished}": bool(unfinished),
        }
        return [f"{self.point}: {what}" for what, is_so in found.items() if is_so]


def run_of_graph(thread: VictimThread) -> str:
    return thread.graph("five_nodes", INPUT)


def run_of_program(thread: VictimThread) -> str:
    """Its checkpoints and writes are sent by several threads; each write takes its time (langgraph#8039)."""
    thread.tell("delay", "0.08")
    return thread.call("programs:five", INPUT)


def told(project: Project, start: Any, point: str) -> Told:
    assert project.tested is not None
    thread = VictimThread(project, project.tested)
    if point:
        thread.inject(kill(at=point))
    run = thread.ended(start(thread))
    return Told(point, run, thread.effects(), thread.acknowledged(), thread.history())


def check_points(project: Project, start: Any, every: int = 1) -> None:
    """Fail with all that is wrong after a kill at each point, or at every second, third..."""
    undisturbed = told(project, start, "")
    assert undisturbed.run["status"] == "success", undisturbed.run["error"]
    assert len(undisturbed.history) == 5
    operations = len(undisturbed.acknowledged)
    # On a busy machine the last checkpoint overtakes the writes of the last task, which LangGraph then sends no more.
    assert operations >= 10, "five checkpoints and the writes of six tasks, but the last"
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        disturbed = list(pool.map(lambda point: told(project, start, point), points(operations)[::every]))
    problems = [one for each in disturbed for one in each.problems(undisturbed)]
    assert not problems, "\n".join(problems)


def test_what_was_acknowledged_is_done_once_wherever_the_agent_dies(tested_hosts: Hosts) -> None:
    check_points(tested_hosts("zygote"), run_of_graph)


def test_writes_that_take_their_time_are_not_lost_wherever_the_program_dies(tested_hosts: Hosts) -> None:
    check_points(tested_hosts("zygote"), run_of_program)


@pytest.mark.slow
def test_an_agent_that_starts_from_nothing_goes_on_as_a_forked_one_does(tested_hosts: Hosts) -> None:
    check_points(tested_hosts("exec"), run_of_graph, every=5)


@pytest.mark.slow
@pytest.mark.parametrize("start", [run_of_graph, run_of_program])
def test_an_agent_that_starts_from_nothing_goes_on_from_every_point(tested_hosts: Hosts, start: Any) -> None:
    check_points(tested_hosts("exec"), start)
