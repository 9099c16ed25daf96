"""A fan-out whose every branch is a subgraph; subgraphs in subgraphs; one that keeps its state between calls."""

import os
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from agentvisor.langgraph import AgentVisorCheckpointer


def add(old: int, new: int) -> int:
    return old + new


class State(TypedDict):
    width: int
    rounds: int
    n: int
    total: Annotated[int, add]


class Branch(TypedDict):
    number: int
    total: Annotated[int, add]


def _inner() -> Any:
    inner = StateGraph(Branch)
    inner.add_node("double", lambda state: {"total": 2 * state["number"]})
    inner.add_edge(START, "double")
    inner.add_edge("double", END)
    return inner.compile()


def _nested() -> Any:
    middle = StateGraph(Branch)
    middle.add_node("inner", _inner())
    middle.add_edge(START, "inner")
    middle.add_edge("inner", END)
    return middle.compile()


def _counting() -> Any:
    """checkpointer=True: its namespace has no task id, and lives as long as the thread."""

    class Kept(TypedDict):
        calls: Annotated[int, add]

    kept = StateGraph(Kept)
    kept.add_node("count", lambda _: {"calls": 1})
    kept.add_edge(START, "count")
    kept.add_edge("count", END)
    return kept.compile(checkpointer=True)


def graph(*, nested: bool = False) -> Any:
    """`rounds` times: a fan-out of `width` branches."""

    def plan(state: State) -> dict[str, int]:
        return {"n": state["n"] + 1}

    def fan_out(state: State) -> Any:
        if state["n"] > state["rounds"]:
            return END
        return [Send("branch", {"number": number, "total": 0}) for number in range(state["width"])]

    counting = _counting()

    def count(_: State) -> dict[str, int]:
        return {"total": 0 * counting.invoke({"calls": 0})["calls"]}

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("branch", _nested() if nested else _inner())
    builder.add_node("count", count)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["branch", END])
    builder.add_edge("branch", "count")
    builder.add_edge("count", "plan")
    return builder.compile(checkpointer=AgentVisorCheckpointer())


def fan_out(width: int, rounds: int, nested: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - called by name
    """The final state, and how long it took."""
    began = time.perf_counter()
    # An attempt after the first goes on: the thread may be made smaller under a run, which then begins a fresh attempt.
    is_first = os.environ["AGENTVISOR_ATTEMPT"] == "1"
    given = {"width": width, "rounds": rounds, "n": 0, "total": 0} if is_first else None
    final = graph(nested=nested).invoke(given, {"recursion_limit": 1000, "max_concurrency": 16}, durability="sync")
    return {"total": final["total"], "seconds": time.perf_counter() - began}
