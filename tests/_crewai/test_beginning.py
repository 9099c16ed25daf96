"""Which run begins anew and which goes on; and which crew is no longer the one that was kept."""

from typing import Any

import pytest

from agentvisor._crewai.beginning import Order, progress_for
from agentvisor._crewai.ledger import MOST_OTHERS, Ledger
from agentvisor._crewai.plan import check, plan_of
from agentvisor._crewai.progress import Progress, from_json
from agentvisor.core.errors import InvalidInput


def kept(**more: Any) -> Progress:
    given = {"began": "r1", "run": "r1", "kind": "crew", "name": "desk", "inputs": {"a": 1}, "tasks": {"crew/0": {}}}
    return Progress(**{**given, **more})


def order(run_id: str = "r2", **more: Any) -> Order:
    given = {"kind": "crew", "name": "desk", "inputs": None, "answers": {}, "forgets": False}
    return Order(run_id, **{**given, **more})


@pytest.mark.parametrize(
    "wanted, was",
    [
        (order("r1", inputs={"a": 1}), kept()),
        (order("r1", inputs={"a": 1}), kept(ended=True)),
        (order(), kept()),
        (order(answers={"q": "yes"}), kept()),
    ],
)
def test_it_goes_on(wanted: Order, was: Progress) -> None:
    found = progress_for(wanted, was)
    assert (found.began, found.run, found.inputs) == ("r1", wanted.run_id, {"a": 1})
    assert found.tasks == {"crew/0": {}}
    assert found.answers == dict(wanted.answers)


@pytest.mark.parametrize(
    "wanted, was",
    [
        (order(), None),
        (order(inputs={"a": 2}), kept()),
        (order(), kept(ended=True)),
        (order(forgets=True), kept()),
        (order(inputs={}), kept(kind="flow")),
    ],
)
def test_it_begins_anew(wanted: Order, was: Progress | None) -> None:
    found = progress_for(wanted, was)
    assert (found.began, found.run, found.inputs, found.tasks) == ("r2", "r2", wanted.inputs, {})


def test_of_the_states_of_inner_flows_the_latest_are_kept_and_the_threads_own_always() -> None:
    ledger = Ledger(kept(), lambda _: None, thread_id="t")
    ledger.persist("t", {"n": 0})
    for number in range(MOST_OTHERS + 5):
        ledger.persist(f"inner-{number}", {"n": number})
        ledger.persist("cart", {"n": number})
    assert len(ledger.progress.persisted) == MOST_OTHERS + 1
    assert ledger.progress.persisted["t"] == {"n": 0}
    assert ledger.progress.persisted["cart"] == {"n": MOST_OTHERS + 4}
    assert "inner-5" not in ledger.progress.persisted


def test_what_is_persisted_outlives_the_execution() -> None:
    assert progress_for(order(), kept(ended=True, persisted={"t": {"n": 1}})).persisted == {"t": {"n": 1}}


@pytest.mark.parametrize(
    "wanted, was, told",
    [
        (order(inputs=["a"]), None, "the input of a crew is an object"),
        (order(answers={"q": 1}), kept(ended=True), "nothing of a crew or flow waits"),
        (order(), kept(kind="flow", name="Desk"), "an unfinished flow 'Desk'"),
        (order(), kept(name="other"), "an unfinished crew 'other'"),
    ],
)
def test_it_is_refused(wanted: Order, was: Progress | None, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        progress_for(wanted, was)


def test_what_is_kept_comes_back() -> None:
    assert from_json(kept().to_json()) == kept()
    assert from_json(None) is None


@pytest.mark.parametrize("saved", [7, {}, {"framework": "crewai", "format": 99}, {"framework": "crewai", "format": 1}])
def test_what_another_version_kept_is_refused(saved: object) -> None:
    with pytest.raises(InvalidInput, match="is not what this version of AgentVisor keeps"):
        from_json(saved)


class Agent:
    def __init__(self, role: str) -> None:
        self.role = role


class Task:
    def __init__(self, description: str, role: str = "") -> None:
        self.description = self.key = description
        self.agent = Agent(role) if role else None


def finished(*tasks: Task) -> dict[str, Any]:
    return {
        f"crew/{number}": {"identity": one.to_json(), "description": tasks[number].description}
        for number, one in enumerate(plan_of(tasks))
    }


@pytest.mark.parametrize(
    "now",
    [
        [Task("a", "x"), Task("b")],
        [Task("a", "x"), Task("b"), Task("new")],
    ],
)
def test_a_crew_whose_finished_tasks_are_the_same_goes_on(now: list[Task]) -> None:
    check(finished(Task("a", "x"), Task("b")) | {"inner:1#1/0": {}}, plan_of(now), now)


@pytest.mark.parametrize(
    "now, told",
    [
        ([Task("a", "y"), Task("b")], "task 1 .* was 'a', and is now 'a' by 'y'"),
        ([Task("other", "x"), Task("b")], "task 1 .* was 'a', and is now 'other' by 'x'"),
        ([Task("new"), Task("a", "x"), Task("b")], "task 1 "),
        ([Task("a", "x")], "task 2 .* was 'b', and is not there any more"),
    ],
)
def test_a_crew_in_which_a_finished_task_is_another_is_refused(now: list[Task], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        check(finished(Task("a", "x"), Task("b")), plan_of(now), now)
