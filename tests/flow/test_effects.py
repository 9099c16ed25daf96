"""An effect happens once wherever the agent dies; where nobody can tell, it is never repeated blindly (B5)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

GRAPHS = {
    "graph": ["node"],
    "agraph": ["node"],
    "tools": ["one", "two"],
    "branches": ["left", "right"],
    "threads": ["node"],
    "nested": ["node"],
    "bare": ["node"],
}
"""Graphs of agents/charges.py, and what they charge."""
PLAIN = ("plain", "plain_async", "plain_steps", "plain_thread")
KNOWN = ("before intent", "after done")
UNKNOWN = ("after intent", "before effect", "after effect")


def started(thread: VictimThread, agent: str, **options: Any) -> str:
    return thread.call(f"charges:{agent}", "x") if agent in PLAIN else thread.graph(f"charges:{agent}", {}, **options)


def resumed(thread: VictimThread, agent: str, answer: object) -> str:
    name = "call" if agent in PLAIN else "graph"
    given: dict[str, Any] = {"command": {"resume": answer}}
    if agent in PLAIN:
        return str(thread.client.runs.create(thread.id, name, **given)["run_id"])
    return thread.graph(f"charges:{agent}", None, **given)


def charged(thread: VictimThread, agent: str) -> list[int]:
    return [thread.did()[f"charged {what}"] for what in GRAPHS.get(agent, ["plain"])]


def questions(thread: VictimThread) -> list[dict[str, Any]]:
    """What waits for an answer, by the thread and by its state: both say the same."""
    state = thread.client.threads.get_state(thread.id)["interrupts"]
    shown = thread.client.threads.get(thread.id)["interrupts"]
    assert sorted(one["id"] for asked in shown.values() for one in asked) == sorted(one["id"] for one in state)
    return [dict(one) for one in state]


def check_killed(project: Project, agent: str, place: str) -> str:
    """What is wrong after a death at a place: nothing, or words."""
    thread = VictimThread(project, project.hosts[0])
    thread.tell("strike", place)
    run = thread.ended(started(thread, agent))
    endings = [one["ending"] for one in run["attempts"]]
    if place in KNOWN:
        wrong = {
            f"ended {endings} {run['error']}": endings != ["agent_signal", "completed"],
            f"charged {charged(thread, agent)}": set(charged(thread, agent)) != {1},
        }
        return "; ".join(f"{agent} {place}: {what}" for what, is_so in wrong.items() if is_so)
    asked = questions(thread)
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


def answered_truly(thread: VictimThread, agent: str) -> dict[str, Any]:
    """The last run, once a person who has looked into the bank's books has answered whatever was asked."""
    run: dict[str, Any] = {}
    for _ in range(5):
        asked = questions(thread)
        if not asked:
            break
        run = thread.ended(resumed(thread, agent, {one["id"]: true_answer(thread, one) for one in asked}))
    return run


def true_answer(thread: VictimThread, question: dict[str, Any]) -> dict[str, Any]:
    name = question["value"]["key"].removeprefix("charge:")
    return {"done": {"charge": name}} if thread.did()[f"charged {name}"] else {"not_done": True}


@pytest.mark.parametrize("place", [*KNOWN, *UNKNOWN])
def test_an_effect_happens_once_wherever_the_agent_dies(warm_victims: Project, place: str) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        problems = pool.map(lambda agent: check_killed(warm_victims, agent, place), (*GRAPHS, *PLAIN))
    assert [one for one in problems if one] == []
