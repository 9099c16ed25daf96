"""A graph whose state holds a value of every kind that LangGraph's serde knows, and dies before it reads them again."""

import dataclasses
import datetime as dt
import decimal
import enum
import os
import pathlib
import signal
import uuid
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from pydantic import BaseModel


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Ticket(BaseModel):
    number: int
    title: str
    opened: dt.datetime
    parts: list[Point] = []


class Mood(enum.Enum):
    CALM = "calm"


class Rank(enum.IntEnum):
    FIRST = 1


class Customer(BaseModel):
    """A class in a class, enums in both (langgraph#6970, #6718, #7695: those came back as dicts, or as nothing)."""

    class Address(BaseModel):
        city: str
        mood: Mood

    address: Address
    moods: dict[str, list[Mood]]
    rank: Rank


class State(TypedDict, total=False):
    customer: Customer
    messages: Annotated[list[AnyMessage], add_messages]
    kinds: dict[str, Any]
    ticket: Ticket
    point: Point
    changed: list[str]
    answer: str


WHEN = dt.datetime(2026, 11, 30, 8, 25, 0, 123456, tzinfo=dt.UTC)

MESSAGES: list[AnyMessage] = [
    SystemMessage("be brief", id="s"),
    HumanMessage("what is 2+2?\x00é😀", id="h", name="ann"),
    AIMessage(
        "",
        id="a",
        tool_calls=[{"name": "add", "args": {"a": 2, "b": [2.0, None]}, "id": "call-1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        response_metadata={"model_name": "scripted"},
    ),
    ToolMessage("4", id="t", tool_call_id="call-1", artifact={"raw": [4]}, status="success"),
    AIMessage([{"type": "text", "text": "four"}], id="b"),
]

KINDS: dict[str, Any] = {
    "datetime": WHEN,
    "date": dt.date(2026, 11, 30),
    "timedelta": dt.timedelta(minutes=30),
    "set": {1},
    "frozenset": frozenset({"a"}),
    "bytes": b"\x00\xff",
    "uuid": uuid.UUID(int=7),
    "decimal": decimal.Decimal("1.10"),
    "path": pathlib.Path("/tmp/x"),
    "nul": "a\x00b",
    "big": 2**63,
    "nested": {"when": [WHEN, {"point": Point(1, 2.5)}]},
}

CUSTOMER = Customer(address=Customer.Address(city="Ulm", mood=Mood.CALM), moods={"all": [Mood.CALM]}, rank=Rank.FIRST)
TICKET = Ticket(number=1, title="a\x00b", opened=WHEN, parts=[Point(1, 2.0)])


def fill(state: State) -> State:
    return {"messages": MESSAGES, "kinds": KINDS, "ticket": TICKET, "point": Point(3, 4.5), "customer": CUSTOMER}


def read(state: State) -> State:
    if os.environ["AGENTVISOR_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    pairs: dict[str, tuple[Any, Any]] = {name: (state["kinds"].get(name), value) for name, value in KINDS.items()}
    pairs |= {f"message {one.id}": (mine, one) for mine, one in zip(state["messages"], MESSAGES, strict=True)}
    pairs |= {"ticket": (state["ticket"], TICKET), "point": (state["point"], Point(3, 4.5))}
    pairs |= {"customer": (state["customer"], CUSTOMER)}
    pairs |= {"mood": (state["customer"].address.mood, Mood.CALM), "rank": (state["customer"].rank, Rank.FIRST)}
    return {"changed": [name for name, (mine, one) in pairs.items() if mine != one or type(mine) is not type(one)]}


def ask(state: State) -> State:
    return {"answer": interrupt({"when": WHEN, "point": Point(5, 6.0)})}


def graph() -> Any:
    builder = StateGraph(State)
    for name, node in (("fill", fill), ("read", read), ("ask", ask)):
        builder.add_node(name, node)
    for begin, end in ((START, "fill"), ("fill", "read"), ("read", "ask"), ("ask", END)):
        builder.add_edge(begin, end)
    return builder.compile()
