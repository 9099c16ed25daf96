"""The thread that is recorded: messages, types of the user's, a fan-out that has finished, a question that waits."""

import datetime as dt
import enum
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt
from pydantic import BaseModel

CONFIG: Any = {"configurable": {"thread_id": "golden"}}
GIVEN: dict[str, Any] = {"messages": [HumanMessage("Where is order 7?", id="h")], "notes": ["begun"]}

did: list[str] = []
"""What the nodes did in this process."""


class Mood(enum.Enum):
    CALM = "calm"


@dataclass
class Point:
    x: int
    y: float


class Customer(BaseModel):
    name: str
    mood: Mood
    places: list[Point] = []


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    customer: Customer
    when: dt.datetime
    dropped: str
    """Not in the state of the release that loads it."""


class Evolved(TypedDict, total=False):
    """The state of a later release: a channel has gone, one has come."""

    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    customer: Customer
    when: dt.datetime
    added: str


class Review(TypedDict, total=False):
    notes: Annotated[list[str], operator.add]


CALL = {"name": "look_up", "args": {"order": "7"}, "id": "call-1", "type": "tool_call"}
MESSAGES: list[AnyMessage] = [
    AIMessage("", id="a", tool_calls=[CALL]),
    ToolMessage("It is on its way.\x00", tool_call_id="call-1", id="t", artifact={"raw": b"\x00\xff"}),
]
FILLED: dict[str, Any] = {
    "customer": Customer(name="Ann", mood=Mood.CALM, places=[Point(1, 2.5)]),
    "when": dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC),
}


def fill(state: Any) -> dict[str, Any]:
    did.append("fill")
    return {**FILLED, "messages": MESSAGES, "dropped": "was here"}


def work(state: Any) -> dict[str, Any]:
    did.append(f"work {state['number']}")
    return {"notes": [f"work {state['number']}"]}


def prepare(state: Any) -> dict[str, Any]:
    did.append("prepare")
    return {}


def ask(state: Any) -> dict[str, Any]:
    did.append("ask")
    return {"notes": [f"answered {interrupt({'question': 'send it again?', 'mood': Mood.CALM.value})}"]}


def finish(state: Any) -> dict[str, Any]:
    did.append("finish")
    return {"notes": ["finished"]}


def builder(schema: type[Any] = State) -> StateGraph[Any]:
    """fill, three workers at once, then a subgraph that has done one thing and asks another."""
    review = StateGraph(Review).add_node("prepare", prepare).add_node("ask", ask)
    review.add_edge(START, "prepare").add_edge("prepare", "ask").add_edge("ask", END)

    def call_review(state: Any) -> dict[str, Any]:
        return {"notes": inner.invoke({})["notes"]}

    inner: Any = review.compile()
    made = StateGraph(schema)
    for name, node in (("fill", fill), ("work", work), ("review", call_review), ("finish", finish)):
        made.add_node(name, node)
    made.add_edge(START, "fill")
    made.add_conditional_edges("fill", lambda _: [Send("work", {"number": one}) for one in range(3)], ["work"])
    made.add_edge("work", "review")
    made.add_edge("review", "finish")
    return made
