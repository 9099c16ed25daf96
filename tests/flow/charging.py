"""Threads whose agents charge a card (agents/charges.py): how they are started, asked, answered and counted."""

from __future__ import annotations

from typing import Any

import httpx
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

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


def answered_truly(thread: VictimThread, agent: str) -> dict[str, Any]:
    """The last run, once a person who has looked into the bank's books has answered whatever was asked."""
    run: dict[str, Any] = {}
    for _ in range(5):
        asked = questions(thread)
        if not asked:
            break
        answers = {one["id"]: true_answer(thread, one) for one in asked}
        # A subgraph that keeps nothing does not know its interrupts' ids again: LangGraph takes a scalar there.
        scalar = agent == "bare"
        run = thread.ended(resumed(thread, agent, *answers.values()) if scalar else resumed(thread, agent, answers))
    return run


def true_answer(thread: VictimThread, question: dict[str, Any]) -> dict[str, Any]:
    name = question["value"]["key"].removeprefix("charge:")
    truth: dict[str, Any] = {"done": {"charge": name}} if thread.did()[f"charged {name}"] else {"not_done": True}
    # Where a task has several effects the question says that its answer has to name the effect.
    must_name = '"effect"' in question["value"]["how_to_answer"]
    return truth | ({"effect": question["value"]["effect"]} if must_name else {})


def unknown(project: Project, agent: str, place: str = "after effect", **signs: str) -> tuple[VictimThread, str]:
    """A thread whose agent has died at a place, and its run."""
    thread = VictimThread(project, project.hosts[0])
    for name, text in signs.items():
        thread.tell(name, text)
    thread.tell("strike", place)
    return thread, started(thread, agent)


def again(thread: VictimThread, agent: str) -> str:
    """A run that goes on where the last one stopped."""
    if agent in PLAIN:
        return str(
            thread.client.runs.create(thread.id, "call", input={"call": f"charges:{agent}", "with": "x"})["run_id"]
        )
    return thread.graph(f"charges:{agent}", None)


def storage(thread: VictimThread) -> dict[str, Any]:
    return dict(httpx.get(f"{thread.host.url}/threads/{thread.id}/storage").json())
