"""What becomes of a graph's own checkpointer, and of its store, before it runs."""

import sqlite3
import warnings
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from agentvisor.guest.runners.langgraph_graph import graph_of, with_our_checkpointer
from agentvisor.langgraph import AgentVisorCheckpointer


class State(TypedDict, total=False):
    seen: str


def one_node(node: Any = lambda state: {"seen": "yes"}) -> StateGraph[State]:
    return StateGraph(State).add_node("node", node).add_edge(START, "node")


def sqlite(folder: Path) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(folder / "other.db"))


def warned(graph: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = with_our_checkpointer(graph)
    assert all(one.category is RuntimeWarning for one in caught)
    return made, [str(one.message) for one in caught]


@pytest.mark.parametrize("saver", [lambda _: InMemorySaver(), sqlite], ids=["memory", "sqlite"])
def test_another_saver_is_replaced_by_ours_and_a_warning_says_so(tmp_path: Path, saver: Any) -> None:
    other = saver(tmp_path)
    graph: Any = one_node().compile(checkpointer=other)
    made, told = warned(graph)
    assert isinstance(made.checkpointer, AgentVisorCheckpointer)
    (line,) = told
    assert f"the graph's {type(other).__name__} is replaced by AgentVisorCheckpointer" in line
    # The user's own object is as it was: a test of theirs may run it elsewhere.
    assert graph.checkpointer is other


def test_the_savers_of_subgraphs_are_named_too(tmp_path: Path) -> None:
    inmost = one_node().compile(checkpointer=sqlite(tmp_path))
    middle = one_node(inmost).compile(checkpointer=InMemorySaver())
    made, told = warned(one_node(middle).compile())
    assert isinstance(made.checkpointer, AgentVisorCheckpointer)
    assert [line.split(":")[1].split(" is ")[0] for line in told] == [
        " the subgraph node's InMemorySaver", " the subgraph node|node's SqliteSaver",
    ]  # fmt: skip


@pytest.mark.parametrize("given", [None, True])
def test_a_graph_without_a_saver_of_its_own_gets_ours_without_a_word(given: Any) -> None:
    made, told = warned(one_node(one_node().compile(checkpointer=given)).compile(checkpointer=given))
    assert isinstance(made.checkpointer, AgentVisorCheckpointer)
    assert told == []


def test_a_graph_that_has_ours_or_wants_none_stays_as_it_is() -> None:
    ours: Any = one_node().compile(checkpointer=AgentVisorCheckpointer())
    none: Any = one_node().compile(checkpointer=False)
    assert warned(ours) == (ours, [])
    assert warned(none) == (none, [])


def test_a_store_is_used_as_it_is() -> None:
    store = InMemoryStore()
    made, told = warned(one_node().compile(store=store))
    assert (made.store, told) == (store, [])


async def test_a_factory_may_be_a_plain_context_manager_and_take_the_runs_config() -> None:
    left: list[str] = []

    @contextmanager
    def factory(config: dict[str, Any]) -> Any:
        yield one_node().compile(name=config["configurable"]["thread_id"])
        left.append("left")

    async with AsyncExitStack() as stack:
        graph: Any = await graph_of(factory, {"configurable": {"thread_id": "t"}}, stack)
        assert (graph.name, left) == ("t", [])
    assert left == ["left"]
