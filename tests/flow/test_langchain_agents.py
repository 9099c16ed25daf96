"""`create_agent` and deep agents run unmodified: a person's leave inside a subagent, files in the state, deaths."""

from typing import Any

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]

GIVEN = {"messages": [{"role": "user", "content": "Pay me back."}]}
EDITED = {"type": "edit", "edited_action": {"name": "pay", "args": {"order": "7", "amount": 5}}}
APPROVED = {"type": "approve"}
REJECTED = {"type": "reject", "message": "not this one"}
DECISIONS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "approve both": ([APPROVED, APPROVED], ["paid 10 for 7", "paid 20 for 8"]),
    "edit one": ([EDITED, APPROVED], ["paid 20 for 8", "paid 5 for 7"]),
    "reject one": ([REJECTED, APPROVED], ["paid 20 for 8"]),
    "edit and reject": ([EDITED, REJECTED], ["paid 5 for 7"]),
    "reject both": ([REJECTED, REJECTED], []),
}


def questions(thread: VictimThread) -> list[dict[str, Any]]:
    return [dict(one) for one in thread.client.threads.get_state(thread.id)["interrupts"]]


def paid(thread: VictimThread) -> list[str]:
    return sorted(what for what, times in thread.did().items() for _ in range(times) if what.startswith("paid"))


@pytest.mark.parametrize(
    "agent, decided", [*(("deep:deep", one) for one in DECISIONS), ("deep:single", "edit and reject")]
)
def test_what_a_person_decides_about_tool_calls_is_done_wherever_the_agent_asked(
    shared: Project, agent: str, decided: str
) -> None:
    decisions, done = DECISIONS[decided]
    thread = VictimThread(shared, shared.hosts[0])
    assert thread.ended(thread.graph(agent, GIVEN))["status"] == "success"
    (asked,) = questions(thread)
    assert [one["args"]["order"] for one in asked["value"]["action_requests"]] == ["7", "8"]
    assert paid(thread) == []
    answer = {"resume": {asked["id"]: {"decisions": decisions}}}
    ended = thread.ended(thread.graph(agent, None, command=answer))
    assert ended["status"] == "success", ended["error"]
    assert (thread.status(), questions(thread)) == ("idle", [])
    # Once, and in a process that has never seen the question.
    assert (paid(thread), thread.did()["looked 7 up"]) == (done, 1)
    last = thread.values()["messages"][-1]
    assert (last["type"], last["content"]) == ("ai", "All is done." if agent == "deep:deep" else "The payer is done.")


def test_files_of_a_deep_agent_are_state_that_the_next_run_goes_on_with(shared: Project) -> None:
    thread = VictimThread(shared, shared.hosts[0])
    thread.ended(thread.graph("deep:deep", GIVEN))
    assert len(questions(thread)) == 1
    assert thread.values()["files"]["/notes.md"]["content"] == "order 7 and 8"
    thread.ended(thread.graph("deep:deep", None, command={"resume": {"decisions": [APPROVED, APPROVED]}}))
    told = [one["content"] for one in thread.values()["messages"] if one["type"] == "tool"]
    assert "order 7 and 8" in told[-1]
    ended = thread.ended(thread.graph("deep:deep", {"messages": [{"role": "user", "content": "Strike it out."}]}))
    assert ended["status"] == "success", ended["error"]
    assert thread.values()["files"]["/notes.md"]["content"] == "nothing is left"


@pytest.mark.parametrize("first", [0, 1])
def test_two_subagents_are_answered_one_after_the_other_and_neither_begins_anew(shared: Project, first: int) -> None:
    thread = VictimThread(shared, shared.hosts[0])
    thread.ended(thread.graph("deep:two", GIVEN))
    asked = {one["value"]["action_requests"][0]["args"]["order"]: one["id"] for one in questions(thread)}
    assert set(asked) == {"7", "8"}
    orders = ["7", "8"] if first == 0 else ["8", "7"]
    for number, order in enumerate(orders, 1):
        decided = {"resume": {asked[order]: {"decisions": [APPROVED]}}}
        ended = thread.ended(thread.graph("deep:two", None, command=decided))
        assert ended["status"] == "success", ended["error"]
        assert paid(thread) == sorted(f"paid 10 for {one}" for one in orders[:number])
        assert [one["id"] for one in questions(thread)] == [asked[one] for one in orders[number:]]
    assert (thread.did()["looked 7 up"], thread.did()["looked 8 up"]) == (1, 1)
    assert [one["content"] for one in thread.values()["messages"] if one["type"] == "tool"] == [
        "7 is settled.", "8 is settled.",
    ]  # fmt: skip
