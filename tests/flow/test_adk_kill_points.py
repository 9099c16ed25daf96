"""ADK's agents are killed before and after every change of their session: what was stored is there, once, each time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread

from agentvisor.testing import kill, points
from agentvisor.testing.stage import Stage

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

CHANGE = "change_thread_state"


def conversation(project: Project, agent: str, point: str) -> tuple[VictimThread, list[str]]:
    """A run that pays an order, killed at a point: its thread, and what is wrong with it."""
    assert project.tested is not None
    thread = VictimThread(project, project.tested)
    if point:
        thread.inject(kill(point))
    run = thread.ended(str(thread.client.runs.create(thread.id, agent, input="Pay order 7.")["run_id"]), seconds=60)
    endings = [one["ending"] for one in run["attempts"]]
    texts = [one["text"] for one in thread.values()["said"] if one["text"]]
    did = thread.did()
    found = {
        f"ended {run['status']}, {run['error']}": run["status"] != "success",
        f"attempts {endings}": endings != ["agent_signal", "completed"][not point :],
        f"output {thread.client.runs.join(thread.id, run['run_id'])}": (
            thread.client.runs.join(thread.id, run["run_id"]) != "Paid."
        ),
        f"said {texts}": texts != ["Pay order 7.", "Found it.", "Paid."],
        f"paid {did['paid 7']} times": did["paid 7"] != 1,
        f"did {dict(did)}": sum(count - 1 for count in did.values()) > 1,
    }
    return thread, [f"{agent} {point}: {what}" for what, is_so in found.items() if is_so]


@pytest.mark.parametrize("agent", ["sequence", pytest.param("workflow", marks=pytest.mark.slow)])
def test_a_kill_at_any_change_of_the_session_loses_and_repeats_nothing(
    agent: str, tmp_path: Path, agentvisor_stage: Stage
) -> None:
    project = Project(tmp_path, agentvisor_stage.temporal.address, "zygote", {agent: f"adk_shop.py:{agent}"})
    project.gate.touch()
    project.tested = agentvisor_stage.host(project.agents(FOLDER=str(tmp_path)), {}, tmp_path)
    undisturbed, problems = conversation(project, agent, "")
    assert not problems
    changes = sum(one.name == CHANGE for one in undisturbed.acknowledged())
    assert changes > 6
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        told = pool.map(lambda point: conversation(project, agent, point)[1], points(changes, CHANGE)[::4])
    assert not [problem for problems in told for problem in problems]
