"""An effect happens once wherever the agent dies; where nobody can tell, a person is asked (B5)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.flow.charging import GRAPHS, KNOWN, PLAIN, UNKNOWN, answered_truly, charged, questions, started
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


def check_killed(project: Project, agent: str, place: str) -> str:
    """What is wrong after a death at a place: nothing, or words."""
    thread = VictimThread(project, project.hosts[0])
    thread.tell("strike", place)
    run = thread.ended(started(thread, agent))
    endings = [one["ending"] for one in run["attempts"]]
    asked = questions(thread)
    # Of several tasks at once, the others are anywhere when the process dies: at a place of which nobody can tell, too.
    siblings = len(charged(thread, agent)) - 1
    if place in KNOWN and asked and len(asked) <= siblings:
        assert endings == ["agent_signal", "paused"], run
        run = answered_truly(thread, agent)
        endings = ["agent_signal", *(one["ending"] for one in run["attempts"])]
    if place in KNOWN:
        wrong = {
            f"ended {endings} {run['error']}": endings != ["agent_signal", "completed"],
            f"charged {charged(thread, agent)}": set(charged(thread, agent)) != {1},
        }
        return "; ".join(f"{agent} {place}: {what}" for what, is_so in wrong.items() if is_so)
    wrong = {
        f"ended {endings} {run['error']}": endings != ["agent_signal", "paused"],
        f"status {thread.status()}": thread.status() != "interrupted",
        f"asked {asked}": {one["value"].get("kind") for one in asked} != {"effect_unknown"},
        "charged twice": any(one > 1 for one in charged(thread, agent)),
    }
    if not any(wrong.values()):
        run = answered_truly(thread, agent)
        wrong = {
            f"then ended {run['status']} {run['error']}": run["status"] != "success",
            f"then charged {charged(thread, agent)}": set(charged(thread, agent)) != {1},
            f"then status {thread.status()}": thread.status() != "idle",
        }
    return "; ".join(f"{agent} {place}: {what}" for what, is_so in wrong.items() if is_so)


@pytest.mark.parametrize("place", [*KNOWN, *UNKNOWN])
def test_an_effect_happens_once_wherever_the_agent_dies(warm_victims: Project, place: str) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        problems = pool.map(lambda agent: check_killed(warm_victims, agent, place), (*GRAPHS, *PLAIN))
    found = [one for one in problems if one]
    assert not found, "\n".join(found)
