"""Real graphs run on it as they do on LangGraph's own saver, whatever process goes on with them."""

import datetime as dt
import decimal
import enum
import operator
import re
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel
from tests.langgraph_saver import THREAD, at, double, put, saver, transport, way

from agentvisor.client.transport import Transport
from agentvisor.langgraph import AgentVisorCheckpointer

__all__ = ["double", "saver", "transport", "way"]

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    items: Annotated[list[str], operator.add]
    answer: str


class Review(TypedDict):
    answer: str


def fan_out(state: State) -> list[Send]:
    return [Send("worker", {"number": number}) for number in range(3)]


def worker(state: dict[str, int]) -> dict[str, list[str]]:
    return {"items": [f"worker {state['number']}"]}


def inner_ask(state: Review) -> dict[str, str]:
    return {"answer": interrupt({"question": "go on?"})}


def build(saver: BaseCheckpointSaver[Any]) -> Any:
    """A fan-out, then a subgraph that asks a person, then an end."""
    inner = StateGraph(Review)
    inner.add_node("ask", inner_ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("start", lambda state: {"items": ["start"]})
    outer.add_node("worker", worker)
    outer.add_node("review", inner.compile())
    outer.add_node("finish", lambda state: {"items": [f"answered {state['answer']}"]})
    outer.add_edge(START, "start")
    outer.add_conditional_edges("start", fan_out, ["worker"])
    outer.add_edge("worker", "review")
    outer.add_edge("review", "finish")
    outer.add_edge("finish", END)
    return outer.compile(checkpointer=saver)


def history(graph: Any) -> list[Any]:
    """A thread's history without what differs between any two runs: ids, times, interrupts' hashes."""
    return [
        (
            one.values,
            one.next,
            {key: value for key, value in one.metadata.items() if key != "parents"},
            [
                (task.name, task.path, task.error, [item.value for item in task.interrupts], task.result)
                for task in one.tasks
            ],
        )
        for one in graph.get_state_history(CONFIG)
    ]


def run_with_interrupt(make_saver: Any, durability: str) -> list[Any]:
    graph = build(make_saver())
    paused = graph.invoke({"items": ["in"], "answer": ""}, CONFIG, durability=durability)
    assert [one.value for one in paused["__interrupt__"]] == [{"question": "go on?"}]
    before = history(build(make_saver()))
    graph = build(make_saver())  # another process
    result = graph.invoke(Command(resume="yes"), CONFIG, durability=durability)
    assert result["items"] == ["in", "start", "worker 0", "worker 1", "worker 2", "answered yes"]
    return [before, history(build(make_saver()))]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_with_fan_out_subgraph_and_interrupt_is_the_same_as_on_langgraphs_own_saver(
    transport: Transport, durability: str
) -> None:
    ours = run_with_interrupt(lambda: AgentVisorCheckpointer(transport=transport), durability)
    memory = InMemorySaver()
    assert ours == run_with_interrupt(lambda: memory, durability)


async def test_the_same_awaited(transport: Transport) -> None:
    graph = build(AgentVisorCheckpointer(transport=transport))
    paused = await graph.ainvoke({"items": ["in"], "answer": ""}, CONFIG)
    assert paused["__interrupt__"]
    graph = build(AgentVisorCheckpointer(transport=transport))
    result = await graph.ainvoke(Command(resume="yes"), CONFIG)
    assert result["items"][-1] == "answered yes"
    assert (await graph.aget_state(CONFIG)).next == ()
    assert len([one async for one in graph.aget_state_history(CONFIG)]) == 6


def test_time_travel_forks_from_the_checkpoint_that_was_named(
    saver: AgentVisorCheckpointer, transport: Transport
) -> None:
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"items": ["one"]})
    builder.add_node("two", lambda state: {"items": ["two"]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph: Any = builder.compile(checkpointer=saver)
    graph.invoke({"items": ["in"], "answer": ""}, CONFIG)
    before_two = next(one for one in graph.get_state_history(CONFIG) if one.next == ("two",))
    again: Any = builder.compile(checkpointer=AgentVisorCheckpointer(transport=transport))
    forked = again.update_state(before_two.config, {"items": ["edited"]})
    assert again.invoke(None, forked)["items"] == ["in", "one", "edited", "two"]
    copied = again.update_state(before_two.config, None, as_node="__copy__")
    assert again.get_state(copied).values["items"] == ["in", "one"]
    assert again.invoke(None, before_two.config)["items"] == ["in", "one", "two"]
    originals = [one.values["items"] for one in again.get_state_history(CONFIG) if one.next == () and one.values]
    assert ["in", "one", "two"] in originals
    assert ["in", "one", "edited", "two"] in originals


class Chat(MessagesState):
    n: int


def test_messages_come_back_as_messages(transport: Transport) -> None:
    call = {"name": "search", "args": {"q": "x\x00y"}, "id": "call-1", "type": "tool_call"}
    sent = [
        HumanMessage("hi", id="1"),
        AIMessage(
            "", id="2", tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        ),
        ToolMessage("found", tool_call_id="call-1", id="3", artifact={"raw": b"\x00\xff"}),
        HumanMessage([{"type": "text", "text": "ü"}, {"type": "image_url", "image_url": {"url": "data:"}}], id="4"),
    ]
    builder = StateGraph(Chat)
    builder.add_node("remove", lambda state: {"messages": [RemoveMessage(id="1")], "n": 2**63 - 1})
    builder.add_edge(START, "remove")
    graph: Any = builder.compile(checkpointer=AgentVisorCheckpointer(transport=transport))
    graph.invoke({"messages": sent, "n": 0}, CONFIG)
    other: Any = builder.compile(checkpointer=AgentVisorCheckpointer(transport=transport))
    assert other.get_state(CONFIG).values == {"messages": sent[1:], "n": 2**63 - 1}


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: float


class Model(BaseModel):
    name: str
    points: list[dict[str, float]] = []


VALUES = [
    None,
    True,
    0.1 + 0.2,
    -(2**63),
    "",
    b"\x00\xff" * 300,
    bytearray(b"x"),
    (1, 2),
    {1, 2},
    frozenset({"a"}),
    deque([1, 2], maxlen=5),
    {1: "int key", "nested": [{"deep": None}]},
    dt.datetime(2026, 11, 30, 5, 43, tzinfo=dt.UTC),
    dt.timedelta(days=1, microseconds=1),
    uuid.UUID(int=7),
    decimal.Decimal("1.10"),
    Path("/a/b"),
    re.compile("a+", re.IGNORECASE),
    Colour.RED,
    Point(1, 2.5),
    Model(name="m", points=[{"x": 1.0}]),
    Send("node", {"x": 1}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.filterwarnings("ignore:.*unregistered type.*")
def test_everything_that_langgraphs_serialiser_knows_comes_back_with_its_type(
    saver: AgentVisorCheckpointer, value: object
) -> None:
    # Not always its own: LangGraph makes lists of tuples.
    serde = JsonPlusSerializer()
    expected = serde.loads_typed(serde.dumps_typed(value))
    stored = put(saver, THREAD, {"value": value}, {"value": "1"})
    saver.put_writes(stored, [("value", value)], "task")
    found = saver.get_tuple(stored)
    assert found is not None
    back, ((_, _, written),) = at(found)["value"], found.pending_writes or []
    assert (back, type(back)) == (expected, type(expected))
    assert (written, type(written)) == (expected, type(expected))
