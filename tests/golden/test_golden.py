"""What an older AgentVisor or LangGraph has stored is loaded by the present, and goes on where it was (MAF#6669)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from tests.client.hosts import way_to
from tests.client.store_double import StoreDouble
from tests.golden import scenario
from tests.golden.recording import FOLDER, recorded
from tests.golden.scenario import CONFIG, FILLED, MESSAGES, Evolved, State, builder

import agentvisor
from agentvisor.langgraph import AgentVisorCheckpointer

RECORDED = sorted(FOLDER.glob("*.binpb"))

Build = Any


@pytest.fixture(params=RECORDED, ids=lambda path: path.stem)
def thread(request: pytest.FixtureRequest) -> Generator[Build]:
    """Compiles the graph on a store that holds a recording."""
    path: Path = request.param
    double = StoreDouble()
    for one in recorded(path):
        assert double(one.thread_id, one).WhichOneof("kind") != "error"
    scenario.did.clear()
    with way_to(double, "socketpair") as transport:
        yield lambda schema: builder(schema).compile(checkpointer=AgentVisorCheckpointer(transport=transport))


def test_every_value_is_what_it_was(thread: Build) -> None:
    state = thread(State).get_state(CONFIG)
    values = {key: value for key, value in state.values.items() if key not in ("messages", "notes", "dropped")}
    assert values == FILLED
    assert {type(value) for value in values.values()} == {type(value) for value in FILLED.values()}
    assert state.values["messages"] == [HumanMessage("Where is order 7?", id="h"), *MESSAGES]
    assert sorted(state.values["notes"]) == ["begun", "work 0", "work 1", "work 2"]
    assert state.next == ("review",)
    assert [one.value["question"] for one in state.interrupts] == ["send it again?"]


@pytest.mark.parametrize("schema", [State, Evolved], ids=["the same state", "a state with other channels"])
def test_the_question_is_answered_and_nothing_that_had_finished_is_done_again(thread: Build, schema: Any) -> None:
    # langgraph#9001: a channel that has gone from the state must not ask again.
    graph = thread(schema)
    (asked,) = graph.get_state(CONFIG).interrupts
    result = graph.invoke(Command(resume={asked.id: "yes"}), CONFIG)
    assert "__interrupt__" not in result
    assert result["notes"][-2:] == ["answered yes", "finished"]
    assert scenario.did == ["ask", "finish"]


def test_its_history_is_whole_and_can_be_gone_back_to(thread: Build) -> None:
    graph = thread(State)
    history = list(graph.get_state_history(CONFIG))
    assert [one.next for one in history] == [("review",), ("work", "work", "work"), ("fill",), ("__start__",)]
    assert graph.invoke(None, history[1].config)["__interrupt__"]
    assert sorted(scenario.did) == ["ask", "prepare", "work 0", "work 1", "work 2"]


def test_the_present_release_is_recorded_with_several_langgraphs() -> None:
    ours = [path for path in RECORDED if path.name.startswith(f"agentvisor-{agentvisor.__version__}.")]
    assert len(ours) >= 2, "python scripts/record_checkpoints.py, in make test-lowest's environment too"
