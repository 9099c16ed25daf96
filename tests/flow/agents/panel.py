"""Graphs that several people are asked by at once, and that are told where to go."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from agents.effects import effect


class State(TypedDict, total=False):
    topics: list[str]
    topic: str
    said: Annotated[list[str], operator.add]
    left: str


# --- fan-out ---------------------------------------------------------------


def send(state: State) -> list[Send]:
    return [Send("expert", {"topic": topic}) for topic in state["topics"]]


def expert(state: State) -> State:
    """Asks where the topic has a question mark."""
    topic = state["topic"]
    effect(f"began {topic}")
    answer = interrupt(topic) if topic.endswith("?") else "known"
    effect(f"ended {topic}")
    return {"said": [f"{topic} {answer}"]}


def sum_up(state: State) -> State:
    effect("summed up")
    return {"left": ", ".join(sorted(state["said"]))}


def _experts(work: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("expert", work)
    builder.add_node("sum_up", sum_up)
    builder.add_conditional_edges(START, send, ["expert"])
    builder.add_edge("expert", "sum_up")
    builder.add_edge("sum_up", END)
    return builder.compile()


experts = _experts(expert)


class Said(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


class Inner(Said, total=False):
    topic: str


def _inner() -> Any:
    """The same expert, as a graph of its own."""
    return (
        StateGraph(Inner, output_schema=Said)
        .add_node("ask", expert)
        .add_edge(START, "ask")
        .add_edge("ask", END)
        .compile()
    )


inner_experts = _experts(_inner())


# --- two questions in one task ---------------------------------------------------------------


def twice(state: State) -> State:
    effect("before first")
    first = interrupt("first?")
    effect("before second")
    second = interrupt("second?")
    effect("after both")
    return {"said": [f"twice {first} {second}"]}


def beside(state: State) -> State:
    effect("before beside")
    answer = interrupt("beside?")
    effect("after beside")
    return {"said": [f"beside {answer}"]}


_two = StateGraph(State)
_two.add_node("twice", twice)
_two.add_node("beside", beside)
_two.add_edge(START, "twice")
_two.add_edge(START, "beside")
two = _two.compile()


# --- tools that ask ---------------------------------------------------------------


@tool
def ask_ann() -> str:
    """Ask Ann."""
    return f"Ann says {interrupt('Ann?')}"


@tool
def ask_bob() -> str:
    """Ask Bob."""
    return f"Bob says {interrupt('Bob?')}"


def calls_tools(state: MessagesState) -> dict[str, list[AnyMessage]]:
    calls = [{"name": name, "args": {}, "id": f"call-{name}"} for name in ("ask_ann", "ask_bob")]
    return {"messages": [AIMessage("", tool_calls=calls)]}


_tools = StateGraph(MessagesState)
_tools.add_node("model", calls_tools)
_tools.add_node("tools", ToolNode([ask_ann, ask_bob]))
_tools.add_edge(START, "model")
_tools.add_edge("model", "tools")
tools = _tools.compile()


# --- commands ---------------------------------------------------------------


def route(state: State) -> Command[Literal["office", "home"]]:
    effect("routed")
    return Command(goto="office", update={"said": ["routed"]})


def to_parent(state: State) -> Command[Any]:
    effect("in the office")
    return Command(goto="home", graph=Command.PARENT, update={"said": ["left the office"]})


def home(state: State) -> State:
    effect("at home")
    return {"said": [f"at home, {interrupt('fine?')}"]}


_office = StateGraph(State).add_node("to_parent", to_parent).add_edge(START, "to_parent").compile()
_routes = StateGraph(State)
_routes.add_node("route", route)
_routes.add_node("office", _office, destinations=("home",))
_routes.add_node("home", home)
_routes.add_edge(START, "route")
routes = _routes.compile()

nested_two = StateGraph(State).add_node("inner", two).add_edge(START, "inner").compile()
