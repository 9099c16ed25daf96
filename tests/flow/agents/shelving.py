"""Graphs that use LangGraph's store as any LangGraph agent does: nothing in them is AgentVisor's."""

from typing import Any, TypedDict

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from agents import signs
from agents.effects import effect


class State(TypedDict, total=False):
    space: str
    found: list[Any]
    listed: list[Any]
    missing: object


async def remember(state: State, runtime: Runtime) -> State:
    """Put items, say so, and wait: whoever kills the process does it then."""
    assert runtime.store is not None
    await runtime.store.aput((state["space"], "memories"), "first", {"text": "likes tea"})
    await runtime.store.aput((state["space"], "memories"), "gone", {"text": "likes coffee"})
    await runtime.store.adelete((state["space"], "memories"), "gone")
    effect("remembered")
    signs.wait_for("gate")
    return {}


def recall(state: State, runtime: Runtime) -> State:
    store = runtime.store
    assert store is not None
    found = store.search((state["space"],), filter={"text": {"$ne": "nothing"}}, query="what does the user like?")
    return {
        "found": [[list(one.namespace), one.key, one.value] for one in found],
        "listed": [list(one) for one in store.list_namespaces(prefix=(state["space"],))],
        "missing": store.get((state["space"],), "missing"),
    }


def inner(state: State) -> State:
    """Of a subgraph, which has the store of the graph that it is in."""
    get_store().put((state["space"], "inner"), "k", {"text": "from the subgraph"}, ttl=60)
    return {}


def too_much(state: State) -> State:
    get_store().put((state["space"],), "large", {"text": "x" * 1_600_000})
    return {}


def not_json(state: State) -> State:
    get_store().put((state["space"],), "odd", {"inside": {"a set": {1}}})
    return {}


def _of(*nodes: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for number, node in enumerate(nodes):
        builder.add_node(f"n{number}", node).add_edge(before, f"n{number}")
        before = f"n{number}"
    return builder.compile()


remembers = _of(remember, _of(inner), recall)
recalls = _of(recall)
overflows = _of(too_much)
confuses = _of(not_json)
