"""A question pauses a run; its answer comes with a new one, is used once, and outlives every death in between."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import AT_A_TIME, VictimThread, is_one_line, warm_by_default, written

from agentvisor.testing import kill, points

pytestmark = pytest.mark.flow

QUESTIONS = {"Is it legal?": "yes", "Is it paid?": "no"}


@warm_by_default
def test_an_answer_is_used_once(victims: Project) -> None:
    thread = VictimThread(victims, victims.hosts[0])
    thread.tell("gate")
    assert thread.ended(thread.graph("slow_tools", {}))["status"] == "success"
    assert thread.status() == "interrupted"
    state = thread.client.threads.get_state(thread.id)
    assert [one["value"]["question"] for one in state["interrupts"]] == ["Go on?"]
    assert thread.ended(thread.graph("slow_tools", None, command={"resume": "yes"}))["status"] == "success"
    assert thread.values()["answer"] == "yes"
    assert thread.did()["answered yes"] == 1
    assert thread.did()["did slow"] == 1
    assert thread.status() == "idle"


def test_two_questions_at_once_are_answered_by_their_ids(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.graph("questions", {}))
    asked = {one["value"]: one["id"] for one in thread.client.threads.get_state(thread.id)["interrupts"]}
    assert asked.keys() == QUESTIONS.keys()
    answers = {asked[question]: answer for question, answer in QUESTIONS.items()}
    assert thread.ended(thread.graph("questions", None, command={"resume": answers}))["status"] == "success"
    assert thread.values() == {"legal": "yes", "money": "no"}
    assert (thread.did()["legal took yes"], thread.did()["money took no"], thread.did()["did both"]) == (1, 1, 1)


def test_questions_are_answered_one_after_the_other(warm_victims: Project) -> None:
    thread = VictimThread(warm_victims, warm_victims.hosts[0])
    thread.ended(thread.graph("questions", {}))
    asked = {one["value"]: one["id"] for one in thread.client.threads.get_state(thread.id)["interrupts"]}
    thread.ended(thread.graph("questions", None, command={"resume": {asked["Is it paid?"]: "no"}}))
    (left,) = thread.client.threads.get_state(thread.id)["interrupts"]
    assert left["value"] == "Is it legal?"
    assert thread.status() == "interrupted"
    thread.ended(thread.graph("questions", None, command={"resume": {left["id"]: "yes"}}))
    assert thread.values() == {"legal": "yes", "money": "no"}
    assert (thread.did()["legal took yes"], thread.did()["money took no"], thread.did()["did both"]) == (1, 1, 1)


ANSWERED = [("slow_tools", "answered yes", "answer"), ("questions", "money took yes", "money")]
"""Graphs, what one does with its answer, and the channel that it then writes."""


def answered(project: Project, graph: str, point: str) -> tuple[VictimThread, list[str], int]:
    """Answer whatever a graph asks, with a kill at that point of the answering run; endings, operations of that run."""
    assert project.tested is not None
    thread = VictimThread(project, project.tested)
    thread.tell("gate")
    thread.ended(thread.graph(graph, {}))
    before = len(thread.acknowledged())
    if point:
        thread.inject(kill(at=point))
    asked = thread.client.threads.get_state(thread.id)["interrupts"]
    run = thread.ended(thread.graph(graph, None, command={"resume": {one["id"]: "yes" for one in asked}}))
    assert run["status"] == "success"
    return thread, [one["ending"] for one in run["attempts"]], len(thread.acknowledged()) - before


@pytest.mark.parametrize("graph, did, channel", ANSWERED)
def test_an_answer_is_used_once_wherever_the_agent_dies(
    tested_hosts: Callable[[str], Project], graph: str, did: str, channel: str
) -> None:
    project = tested_hosts("zygote")
    undisturbed, _, operations = answered(project, graph, "")

    def check(point: str) -> None:
        thread, endings, _ = answered(project, graph, point)
        assert endings == ["agent_signal", "completed"], point
        assert thread.values() == undisturbed.values(), point
        assert is_one_line(thread.history()), point
        acknowledged = any(channel in written(one) for one in thread.acknowledged() if one.attempt == 1)
        # What was done but not acknowledged is done again.
        assert thread.did()[did] in ((1,) if acknowledged else (1, 2)), point
        assert thread.status() == "idle", point

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(check, points(operations)))
