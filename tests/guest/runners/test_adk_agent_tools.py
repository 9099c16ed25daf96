"""An agent in an AgentTool has a session of its own that nobody sees again: what it does is part of the call."""

import asyncio
from collections import Counter

import pytest
from google.adk.agents import Agent
from google.adk.tools.agent_tool import AgentTool
from tests._adk.thread_state_double import Died
from tests.guest.runners.adk_agents import DID, ORDER, agent, pay
from tests.guest.runners.adk_running import Thread

from agentvisor.client import tool_scope
from agentvisor.testing import call

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def forget() -> None:
    DID.clear()


def test_a_call_of_one_that_died_beside_a_call_that_waits_is_made_again() -> None:
    deaths: list[str] = []

    def once_deadly() -> str:
        """Die the first time."""
        deaths.append("died")
        if len(deaths) == 1:
            raise Died
        return "alive"

    def made() -> Agent:
        inner = agent("inner", [call("once_deadly"), "inner done"], once_deadly)
        return agent("a", [[call("order", note="1"), call("inner", request="go")], "a done"], ORDER, AgentTool(inner))

    thread = Thread(made)
    assert thread.run("go") == ("paused", None)
    assert len(deaths) == 2
    (asked,) = thread.channel.waiting
    assert thread.run(answers={asked["id"]: "sent"}) == ("completed", "a done")
    results = {
        one.name: one.response
        for event in asyncio.run(thread.session()).events
        for one in event.get_function_responses()
    }
    assert results == {"order": {"result": "sent"}, "inner": {"result": "inner done"}}
    assert (DID.count("ordered 1"), len(deaths)) == (1, 2)


def test_effects_of_its_tools_belong_to_the_call_and_are_the_same_when_it_is_made_again() -> None:
    scopes: list[str] = []

    def act() -> str:
        """Act, and die the first time."""
        scopes.append(tool_scope.scope())
        if len(scopes) == 1:
            raise Died
        return "acted"

    def made() -> Agent:
        inner = agent("inner", [call("act"), "inner done"], act)
        return agent("a", [call("inner", request="go"), call("act"), "a done"], AgentTool(inner), act)

    thread = Thread(made)
    assert thread.run("go") == ("completed", "a done")
    (outer, own) = [one.id for event in asyncio.run(thread.session()).events for one in event.get_function_calls()]
    assert scopes == [f"tool/{outer}/", f"tool/{outer}/", f"tool/{own}/"]


def test_nothing_is_kept_of_its_calls() -> None:
    def act(note: str) -> str:
        """Act."""
        return note

    def made() -> Agent:
        inner = agent("inner", [[call("act", note="1"), call("act", note="2")], "inner done"], act)
        return agent("a", [call("inner", request="go"), "a done"], AgentTool(inner))

    thread = Thread(made)
    assert thread.run("go") == ("completed", "a done")
    assert asyncio.run(thread.state.akeys("finished/", scope="adk")) == []
    assert Counter(DID)["model: inner done"] == 1


def test_of_an_agent_that_is_a_node_the_rest_alone_is_done_beside_a_call_that_waits() -> None:
    def made() -> Agent:
        inner = agent("inner", [call("pay", note="1"), "inner done"], pay, mode="single_turn")
        calls = [call("order", note="1"), call("inner", request="go")]
        return agent("a", [calls, "a done"], ORDER, sub_agents=[inner])

    def played(left: int | None) -> Thread:
        DID.clear()
        thread = Thread(made)
        thread.state.left = left
        assert thread.run("go") == ("paused", None), left
        (asked,) = thread.channel.waiting
        assert thread.run(answers={asked["id"]: "sent"}) == ("completed", "a done"), left
        return thread

    writes = played(None).state.writes
    did = Counter(DID)
    for left in range(writes):
        played(left)
        again = Counter(DID)
        assert set(again) == set(did), left
        # What was under way when it died: an answer of a model, or its two calls.
        assert (again - did).total() <= 2, (left, DID)
