"""Agents that the tests of the API run."""

import operator
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]
    gate: str


def work(state: State) -> State:
    get_stream_writer()({"working": state.get("count", 0)})
    return {"count": state.get("count", 0) + 1, "log": ["worked"]}


def ask(state: State) -> State:
    return {"log": [f"answer {interrupt({'question': 'sure?'})}"]}


def wait(state: State) -> State:
    """Run until the gate's file is there, if there is a gate."""
    if "gate" in state:
        gate = Path(state["gate"])
        gate.with_suffix(".started").touch()
        while not gate.exists():
            time.sleep(0.01)
    return {"log": ["waited"]}


def ask_and_wait(state: State) -> State:
    """At the gate once it is answered."""
    answer = interrupt("sure?")
    wait(state)
    return {"log": [f"answer {answer}"]}


def fail(state: State) -> State:
    raise ValueError("boom!")


def model(state: MessagesState) -> dict[str, Any]:
    scripted = GenericFakeChatModel(messages=iter([AIMessage("hello big world", id="answer")]))
    return {"messages": [scripted.invoke(state["messages"])]}


def _graph(*nodes: Any) -> StateGraph[State]:
    builder = StateGraph(State)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    return builder


def ask_too(state: State) -> State:
    return {"log": [f"other answer {interrupt({'question': 'really?'})}"]}


def die_once(state: State) -> State:
    """Kill the agent's process where nobody has done so before."""
    marker = Path(state["gate"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["lived"]}


asking = _graph(work, ask)
choosing = StateGraph(State)
choosing.add_node(ask)
choosing.add_node(ask_too)
choosing.add_edge(START, "ask")
choosing.add_edge(START, "ask_too")
dying = _graph(work, die_once)
asking_at_a_gate = _graph(work, ask_and_wait)
failing = _graph(work, fail)
waiting = _graph(work, wait)
nested = StateGraph(State)
nested.add_node("child", _graph(work, ask).compile())
nested.add_edge(START, "child")
talking = StateGraph(MessagesState)
talking.add_node("model", model)
talking.add_edge(START, "model")


def sub_work(state: State) -> State:
    return {"log": ["sub worked"]}


def add(state: "Items") -> "Items":
    return {"items": [f"item {len(state['items'])}" + "." * 200]}


def confirm(state: "Items") -> "Items":
    return {"items": [f"answer {interrupt('go on?')}"]}


def tell(state: "Items") -> "Items":
    """What the delta channel holds is known to the agent alone: say it in a channel that everybody can read."""
    return {"seen": [one.rstrip(".") for one in state["items"]]}


class Items(TypedDict, total=False):
    items: Annotated[list[str], DeltaChannel(lambda old, new: [*old, *(one for some in new for one in some)])]
    seen: list[str]


nested_later = StateGraph(State)
nested_later.add_node("work", work)
nested_later.add_node("inner", _graph(sub_work, ask).compile())
nested_later.add_edge(START, "work")
nested_later.add_edge("work", "inner")

deltas = StateGraph(Items)
deltas.add_sequence([add, confirm, tell])
deltas.add_edge(START, "add")


def plain(input: Any) -> Iterator[dict[str, int]]:
    yield {"step": 1}
    yield {"step": 2}
    return {"echo": input}


def nothing(_: Any) -> None:
    """An agent that says nothing."""
