"""Agents that take turns on a thread: each keeps what it asks until it is answered, given up, or overdue."""

from __future__ import annotations

import httpx
import pytest
from tests.flow.conftest import Project
from tests.flow.desks import Desk, asking
from tests.support.waiting_sync import until

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture
def desk(desks: Project) -> Desk:
    return Desk(desks, desks.hosts[0])


def run_as(desk: Desk, agent: str, **body: object) -> dict[str, object]:
    desk.agent = agent
    return desk.ended(desk.begin(**body))


def listed(desk: Desk, agent: str) -> set[str]:
    """What the list over all threads says that the agent asks on this one."""
    found = httpx.get(f"{desk.host.url}/interrupts", params={"agent": agent, "limit": 1000}).json()
    return {one["id"] for one in found if one["thread_id"] == desk.id}


def test_another_agents_runs_leave_what_a_plain_agent_and_a_graph_have_asked(desk: Desk) -> None:
    first, second = asking(desk, "graph", deadline=60)
    (third,) = [one for one in asking(desk, "plain", deadline=60) if one["agent"] == "plain"]
    # An agent that asks nothing runs to its end, and one that asks under the same names is answered.
    assert run_as(desk, "desk", input={"ask": {}})["status"] == "success"
    assert {one["id"]: one["agent"] for one in desk.records()} == {
        first["id"]: "graph", second["id"]: "graph", third["id"]: "plain"
    }  # fmt: skip
    assert [one["deadline"] for one in desk.records() if one["id"] == first["id"]] == [first["deadline"]]
    assert desk.status() == "interrupted"
    for agent, mine in (("graph", {first["id"], second["id"]}), ("plain", {third["id"]}), ("desk", set[str]())):
        until(lambda agent=agent, mine=mine: listed(desk, agent) == mine, seconds=30, pause=0.1)  # visibility lags
    desk.agent = "desk"
    assert "asked by agent 'plain'" in desk.refused(command={"resume": {third["id"]: "yes"}})["message"]
    desk.answered(**{third["id"]: "plain"})
    desk.answered(**{first["id"]: "one"})
    desk.answered(**{second["id"]: "two"})
    assert {what for what in desk.did() if "took" in what} == {"first took plain", "first took one", "second took two"}
    assert (desk.waits(), desk.status()) == ([], "idle")


def test_what_another_agents_caller_gives_up_does_not_come_back(desk: Desk) -> None:
    desk.ask("a", "b")
    assert run_as(desk, "plain", input={"how": {}}, on_interrupt="abandon")["status"] == "success"
    (asked,) = desk.records()
    assert asked["agent"] == "plain"
    desk.answered(**{asked["id"]: "yes"})
    assert (desk.waits(), desk.status()) == ([], "idle")
    assert run_as(desk, "desk", input={"ask": {"c": {}}})["status"] == "success"
    assert desk.did()["forgot"] == 1
    assert desk.waits() == ["c"]


def test_one_agents_deadline_closes_what_that_agent_asks(desk: Desk) -> None:
    asking(desk, "plain", deadline=1.5)
    asking(desk, "graph", deadline=60)
    until(lambda: {one["agent"] for one in desk.records()} == {"graph"}, seconds=30, pause=0.1)
    assert len(desk.records()) == 2
    assert sorted(run["status"] for run in desk.client.runs.list(desk.id)) == ["success", "timeout"]
