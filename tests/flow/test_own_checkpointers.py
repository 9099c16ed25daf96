"""A graph that brings a checkpointer gets ours instead, its subgraphs too, and one that brings a store."""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]


@pytest.fixture
def thread(warm_victims: Project) -> VictimThread:
    return VictimThread(warm_victims, warm_victims.hosts[0])


def test_a_subgraph_with_memory_of_its_own_remembers_earlier_runs_and_goes_on_from_its_question(
    thread: VictimThread,
) -> None:
    for words, word in ((["one"], "one"), (["one", "two"], "two")):
        thread.ended(thread.graph("keeping:remembers", {"word": word}))
        assert thread.values()["remembered"] == words
    thread.ended(thread.graph("keeping:remembers", {"word": "sure?"}))
    thread.ended(thread.graph("keeping:remembers", None, command={"resume": "yes"}))
    assert thread.values()["remembered"] == ["one", "two", "yes"]
    # In a namespace that every run finds again: it has no task in its name (langgraph#4796, #3206).
    history = thread.client.threads.get_history(thread.id, limit=100, checkpoint={"checkpoint_ns": "call"})
    assert {one["checkpoint"]["checkpoint_ns"] for one in history} == {"call"}
    assert len(history) > 3


def test_savers_in_memory_are_replaced_so_that_a_question_outlives_its_process(thread: VictimThread) -> None:
    thread.ended(thread.graph("keeping:forgets", {"word": "sure?"}))
    assert thread.status() == "interrupted"
    ended = thread.ended(thread.graph("keeping:forgets", None, command={"resume": "yes"}))
    assert ended["status"] == "success", ended["error"]
    assert thread.values()["remembered"] == ["yes"]
    thread.ended(thread.graph("keeping:forgets", {"word": "again"}))
    assert thread.values()["remembered"] == ["again"]


def test_a_store_in_memory_is_replaced_so_that_what_it_keeps_outlives_its_process(thread: VictimThread) -> None:
    thread.ended(thread.graph("keeping:stores", {"word": "one"}))
    assert thread.values()["kept"] == "one"
    thread.ended(thread.graph("keeping:stores", {"word": "two"}))
    assert thread.values()["kept"] == "one, two"
    assert "InMemoryStore is replaced by AgentVisorStore" in thread.host.log.read_text()
