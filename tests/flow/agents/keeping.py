"""Graphs that bring a checkpointer or a store of their own, at the root or in a subgraph."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt

from agents.effects import effect


class Inner(TypedDict, total=False):
    turns: Annotated[list[str], operator.add]
    word: str


class State(TypedDict, total=False):
    word: str
    remembered: list[str]
    kept: str


def turn(state: Inner) -> Inner:
    effect(f"turn {state['word']}")
    word = interrupt("go on?") if state["word"].endswith("?") else state["word"]
    return {"turns": [word]}


def _outer(inner: Any, saver: Any = None, store: Any = None) -> Any:
    def call(state: State) -> State:
        return {"remembered": inner.invoke({"word": state["word"]})["turns"]}

    def keep(state: State, *, store: BaseStore) -> State:
        store.put(("words",), state["word"], {"word": state["word"]})
        return {"kept": ", ".join(sorted(one.key for one in store.search(("words",))))}

    builder = StateGraph(State).add_node("call", call).add_edge(START, "call")
    if store is not None:
        builder.add_node("keep", keep).add_edge("call", "keep")
    return builder.compile(checkpointer=saver, store=store)


def _inner(saver: Any = None) -> Any:
    return StateGraph(Inner).add_node("turn", turn).add_edge(START, "turn").compile(checkpointer=saver)


remembers = _outer(_inner(saver=True))
"""The subgraph's memory is the thread's."""
forgets = _outer(_inner(InMemorySaver()), InMemorySaver())
"""Both bring a saver; LangGraph gives a subgraph its parent's, for one call."""
stores = _outer(_inner(), store=InMemoryStore())
