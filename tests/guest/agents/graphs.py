"""Graphs that the tests run in guests. Each leaves a line in the file of AGENTVISOR_TEST_LOG for each side effect."""

import asyncio
import operator
import os
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    seen: Annotated[list[Any], operator.add]
    steps: int


def effect(line: str) -> None:
    with Path(os.environ["TEST_LOG"]).open("a") as log:
        log.write(f"{line}\n")


def step(state: State) -> dict[str, Any]:
    steps = state.get("steps", 0)
    return {"messages": [("ai", f"step {steps}")], "steps": steps + 1}


def looping() -> StateGraph:
    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: END if state["steps"] >= 3 else "step")
    return builder


builder = looping()
graph = builder.compile()
with_other_saver = builder.compile(checkpointer=InMemorySaver())
without_saver = builder.compile(checkpointer=False)


def factory() -> StateGraph:
    return looping()


async def async_factory(config):
    await asyncio.sleep(0)
    assert config["configurable"]["thread_id"]
    return looping().compile()


@asynccontextmanager
async def managed_factory(config):
    effect("open")
    yield looping().compile()
    effect("close")


@contextmanager
def swallowing_factory(config):
    """What it holds must not keep it from closing; so somebody has written `except BaseException`."""
    with suppress(BaseException):
        yield fails


def no_graph():
    return 7


def talk(state: State) -> dict[str, Any]:
    model = GenericFakeChatModel(messages=iter([AIMessage(content="hello big world")]))
    get_stream_writer()({"progress": "talking"})
    return {"messages": [model.invoke(state["messages"])]}


talking = StateGraph(State)
talking.add_node("talk", talk)
talking.add_edge(START, "talk")
child = talking.compile()

family = StateGraph(State)
family.add_node("child", child)
family.add_edge(START, "child")


def fan_out(state: State) -> list[Send]:
    return [Send("work", {"steps": index}) for index in range(3)]


mapped = StateGraph(State)
mapped.add_node("work", lambda state: {"seen": [state["steps"]]})
mapped.add_conditional_edges(START, fan_out, ["work"])


def asking(state: State) -> dict[str, Any]:
    effect("asking")
    return {"seen": [interrupt({"question": "sure?"})]}


asks = StateGraph(State)
asks.add_node("ask", asking)
asks.add_node("after", step)
asks.add_edge(START, "ask")
asks.add_edge("ask", "after")


def failing(state: State) -> dict[str, Any]:
    raise ValueError("boom!")


fails = StateGraph(State)
fails.add_node("step", step)
fails.add_node("fail", failing)
fails.add_edge(START, "step")
fails.add_edge("step", "fail")
gated = fails.compile(interrupt_before=["fail"])
gated_inside = StateGraph(State).add_node("inner", gated).add_edge(START, "inner").compile()


def quick(name: str) -> Any:
    def node(state: State) -> dict[str, Any]:
        effect(name)
        return {"seen": [name]}

    return node


def slow(state: State) -> dict[str, Any]:
    effect("slow began")
    print("slow began")
    if not Path(os.environ["TEST_LOG"] + ".go").exists():
        time.sleep(300)
    effect("slow ended")
    return {"seen": ["slow"]}


parallel = StateGraph(State)
parallel.add_node("before", quick("before"))
parallel.add_node("one", quick("one"))
parallel.add_node("two", quick("two"))
parallel.add_node("slow", slow)
parallel.add_node("last", quick("last"))
parallel.add_edge(START, "before")
for name in ("one", "two", "slow"):
    parallel.add_edge("before", name)
parallel.add_edge(["one", "two", "slow"], "last")


def exiting(state: State) -> dict[str, Any]:
    sys.exit()


async def exiting_async(state: State) -> dict[str, Any]:
    sys.exit(0)


def exits_in(node: Any) -> StateGraph:
    builder = StateGraph(State)
    builder.add_node("exit", node)
    builder.add_edge(START, "exit")
    return builder


exits = exits_in(exiting)
exits_async = exits_in(exiting_async)


def count_up(state: State) -> dict[str, Any]:
    Path(os.environ["TEST_LOG"] + ".steps").write_text(str(state["steps"] + 1))
    return {"steps": state["steps"] + 1}


hurries = StateGraph(State)
hurries.add_node("count_up", count_up)
hurries.add_edge(START, "count_up")
hurries.add_conditional_edges("count_up", lambda state: END if state["steps"] >= 200 else "count_up")
