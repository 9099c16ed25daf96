"""Several people are asked at once: each is answered by id, in any order and in part, and nothing is asked again."""

from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture
def thread(warm_victims: Project) -> VictimThread:
    return VictimThread(warm_victims, warm_victims.hosts[0])


def begin(thread: VictimThread, graph: str, given: Any) -> None:
    ended = thread.ended(thread.graph(graph, given))
    assert ended["status"] == "success", ended["error"]


def waiting(thread: VictimThread) -> dict[str, str]:
    """The ids by the questions."""
    return {one["value"]: one["id"] for one in thread.client.threads.get_state(thread.id)["interrupts"]}


def answer(thread: VictimThread, graph: str, answers: Any) -> None:
    ended = thread.ended(thread.graph(graph, None, command={"resume": answers}))
    assert ended["status"] == "success", ended["error"]


@pytest.mark.parametrize("graph", ["panel:experts", "panel:inner_experts"])
def test_sent_tasks_that_ask_are_answered_one_by_one_and_the_others_are_left_alone(
    thread: VictimThread, graph: str
) -> None:
    begin(thread, graph, {"topics": ["tea?", "milk", "sugar?", "salt?"]})
    asked = waiting(thread)
    assert set(asked) == {"tea?", "sugar?", "salt?"}
    for number, topic in enumerate(["sugar?", "salt?", "tea?"], 1):
        answer(thread, graph, {asked[topic]: f"yes {number}"})
        assert waiting(thread) == {left: asked[left] for left in ["sugar?", "salt?", "tea?"][number:]}
        assert thread.did()[f"ended {topic}"] == 1
    assert thread.values()["left"] == "milk known, salt? yes 2, sugar? yes 1, tea? yes 3"
    # An answered task is not begun for the others' sake, and one that did not ask is not begun again at all.
    assert (thread.did()["began milk"], thread.did()["summed up"]) == (1, 1)


@pytest.mark.parametrize("order", [("first?", "second?", "beside?"), ("beside?", "first?", "second?")])
def test_a_question_that_was_answered_does_not_come_up_again(thread: VictimThread, order: tuple[str, ...]) -> None:
    begin(thread, "panel:two", {})
    assert set(waiting(thread)) == {"first?", "beside?"}
    for number, question in enumerate(order, 1):
        answer(thread, "panel:two", {waiting(thread)[question]: number})
        assert not set(order[:number]) & set(waiting(thread))
    at = {question: number for number, question in enumerate(order, 1)}
    assert sorted(thread.values()["said"]) == [f"beside {at['beside?']}", f"twice {at['first?']} {at['second?']}"]
    assert (thread.did()["after both"], thread.did()["after beside"]) == (1, 1)


def test_tools_of_one_message_hear_their_own_answers(thread: VictimThread) -> None:
    begin(thread, "panel:tools", {"messages": [{"role": "user", "content": "ask both"}]})
    while left := waiting(thread):
        answer(thread, "panel:tools", {id_: f"to {question}" for question, id_ in left.items()})
    told = [one["content"] for one in thread.values()["messages"] if one["type"] == "tool"]
    assert told == ["Ann says to Ann?", "Bob says to Bob?"]


def test_a_subgraph_sends_its_parent_on_and_an_answer_comes_with_an_update(thread: VictimThread) -> None:
    begin(thread, "panel:routes", {})
    assert set(waiting(thread)) == {"fine?"}
    command: Any = {"resume": "fine", "update": {"left": "the keys"}}
    assert thread.ended(thread.graph("panel:routes", None, command=command))["status"] == "success"
    assert thread.values() == {"said": ["routed", "left the office", "at home, fine"], "left": "the keys"}
    assert thread.did() == {"routed": 1, "in the office": 1, "at home": 2}


def test_a_caller_sends_a_thread_to_a_node_with_an_update(thread: VictimThread) -> None:
    begin(thread, "panel:routes", {})
    answer(thread, "panel:routes", "fine")
    command: Any = {"goto": "route", "update": {"left": "it again"}}
    assert thread.ended(thread.graph("panel:routes", None, command=command))["status"] == "success"
    assert (thread.did()["routed"], thread.values()["left"], set(waiting(thread))) == (2, "it again", {"fine?"})
    answer(thread, "panel:routes", "fine")
    send: Any = {"goto": {"node": "home", "input": {}}}
    assert thread.ended(thread.graph("panel:routes", None, command=send))["status"] == "success"
    assert (thread.did()["routed"], set(waiting(thread))) == (2, {"fine?"})


def test_an_answer_without_an_id_is_refused_where_one_task_of_a_subgraph_asks_two(thread: VictimThread) -> None:
    # langgraph#8579: LangGraph gives the answer to whichever asks first.
    begin(thread, "panel:nested_two", {})
    asked = waiting(thread)
    assert set(asked) == {"first?", "beside?"}
    before = thread.client.threads.get_state(thread.id)
    with pytest.raises(ConflictError):
        thread.graph("panel:nested_two", None, command={"resume": "yes"})
    assert thread.client.threads.get_state(thread.id) == before
    answer(thread, "panel:nested_two", {asked["beside?"]: "b"})
    with pytest.raises(ConflictError):
        thread.graph("panel:nested_two", None, command={"resume": {asked["beside?"]: "again"}})
    answer(thread, "panel:nested_two", {asked["first?"]: "1"})
    # The same task asks again: where one waits, an answer needs no id.
    answer(thread, "panel:nested_two", "2")
    assert sorted(thread.values()["said"]) == ["beside b", "twice 1 2"]
    assert (thread.did()["after both"], thread.did()["after beside"]) == (1, 1)
