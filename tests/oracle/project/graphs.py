"""Graphs that both servers run, from the same langgraph.json; whatever they do is the same each time."""

import operator
import time
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    """What the graphs count and note."""

    count: int
    log: Annotated[list[str], operator.add]
    gate: str
    told: dict[str, Any]


class Context(TypedDict, total=False):
    """What a caller may tell."""

    user: str


def work(state: State) -> State:
    """One more."""
    get_stream_writer()({"working": state.get("count", 0)})
    return {"count": state.get("count", 0) + 1, "log": ["worked"]}


def done(state: State) -> State:
    """The last."""
    return {"log": ["done"]}


def ask(state: State) -> State:
    """Ask, and note the answer."""
    return {"log": [f"answer {interrupt({'question': 'sure?'})}"]}


def ask_left(state: State) -> State:
    """One of two questions."""
    return {"log": [f"left {interrupt('left?')}"]}


def ask_right(state: State) -> State:
    """The other."""
    return {"log": [f"right {interrupt('right?')}"]}


def fail(state: State) -> State:
    """Never well."""
    raise ValueError("boom!")


def wait(state: State) -> State:
    """Until the gate's file is there."""
    if "gate" in state:
        gate = Path(state["gate"])
        gate.with_suffix(".started").touch()
        deadline = time.monotonic() + 20
        while not gate.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    return {"log": ["waited"]}


def choose(state: State) -> Command[Any]:
    """Go where the count says."""
    return Command(update={"log": ["chose"]}, goto="left" if state.get("count", 0) % 2 == 0 else "right")


def left(state: State) -> State:
    """One way."""
    return {"log": ["left"]}


def right(state: State) -> State:
    """The other way."""
    return {"log": ["right"]}


def tell(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """What the run was given."""
    configurable = config.get("configurable", {})
    return {
        "told": {
            "color": configurable.get("color"),
            "tags": sorted(one for one in config.get("tags", []) if not one.startswith("seq:")),
            "recursion_limit": config.get("recursion_limit"),
            "user": (runtime.context or {}).get("user"),
        }
    }


def model(state: MessagesState) -> dict[str, Any]:
    """Words, one at a time."""
    scripted = GenericFakeChatModel(messages=iter([AIMessage("hello big world", id="answer")]))
    return {"messages": [scripted.invoke(state["messages"])]}


def _line(*nodes: Any) -> StateGraph[Any]:
    builder = StateGraph(State)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder


steps = _line(work, done).compile()
asks = _line(work, ask).compile()
fails = _line(work, fail).compile()
slow = _line(work, wait).compile()

_two = StateGraph(State)
_two.add_node("work", work)
_two.add_node("ask_left", ask_left)
_two.add_node("ask_right", ask_right)
_two.add_edge(START, "work")
_two.add_edge("work", "ask_left")
_two.add_edge("work", "ask_right")
asks_two = _two.compile()

_nested = StateGraph(State)
_nested.add_node("work", work)
_nested.add_node("child", _line(ask, done).compile())
_nested.add_edge(START, "work")
_nested.add_edge("work", "child")
nested = _nested.compile()

_routes = StateGraph(State)
_routes.add_node("choose", choose, destinations=("left", "right"))
_routes.add_node("left", left)
_routes.add_node("right", right)
_routes.add_edge(START, "choose")
routes = _routes.compile()

_tells = StateGraph(State, context_schema=Context)
_tells.add_node("tell", tell)
_tells.add_edge(START, "tell")
tells = _tells.compile()

_chat = StateGraph(MessagesState)
_chat.add_node("model", model)
_chat.add_edge(START, "model")
chat = _chat.compile()
