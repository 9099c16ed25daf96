"""The graph of the long thread: a step adds a note, every tenth fans out; and the same in plain Python."""

import random
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

WIDTH = 5
NOTES = 200
"""Kept at a time: the state is bounded, the thread's history is not."""


def newest(old: list[str], new: list[str]) -> list[str]:
    return [*old, *new][-NOTES:]


def add(old: int, new: int) -> int:
    return old + new


class State(TypedDict):
    n: int
    steps: int
    total: Annotated[int, add]
    notes: Annotated[list[str], newest]


def note(n: int) -> str:
    words = random.Random(n)
    return " ".join(f"{words.getrandbits(32):x}" for _ in range(12))


def expected(steps: int) -> dict[str, Any]:
    """The final state, without LangGraph."""
    notes, total = list[str](), 0
    for n in range(1, steps + 1):
        total += n
        notes.append(note(n))
        if n % 10 == 0:
            total += sum(range(WIDTH))
    return {"n": steps, "steps": steps, "total": total, "notes": notes[-NOTES:]}


def run(saver: Any, steps: int) -> dict[str, Any]:
    """The final state, and when each hundredth step began."""
    began = list[float]()

    def step(state: State) -> dict[str, Any]:
        n = state["n"] + 1
        if n % 100 == 1:
            began.append(time.time())
        return {"n": n, "total": n, "notes": [note(n)]}

    def branch(given: dict[str, int]) -> dict[str, int]:
        return {"total": given["number"]}

    def after(state: State) -> Any:
        if state["n"] % 10 == 0 and state["n"]:
            return [Send("branch", {"number": number}) for number in range(WIDTH)]
        return "more"

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_node("branch", branch)
    builder.add_node("more", lambda _: {})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", after, ["branch", "more"])
    builder.add_edge("branch", "more")
    builder.add_conditional_edges("more", lambda state: END if state["n"] >= state["steps"] else "step")
    graph = builder.compile(checkpointer=saver)
    given = {"n": 0, "steps": steps, "total": 0, "notes": []}
    final = graph.invoke(given, {"recursion_limit": 10 * steps}, durability="sync")
    return {"state": final, "began": [*began, time.time()]}


def agent(given: dict[str, int]) -> dict[str, Any]:
    """As an agent of a host."""
    from agentvisor.langgraph import AgentVisorCheckpointer

    return run(AgentVisorCheckpointer(), given["steps"])
