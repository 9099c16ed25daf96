"""The agent that benchmarks/sizing.py counts with: a conversation that grows by a message of 1.5 KB a super-step."""

import operator
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    wanted: int
    pause: float
    messages: Annotated[list[str], operator.add]


def turn(state: State) -> State:
    number = len(state.get("messages", []))
    time.sleep(state.get("pause", 0))
    # No two alike: what is stored once for many would make it look cheap.
    words = " ".join(f"{(number * 7919 + word * 104729) % 1000003:x}" for word in range(280))
    return {"messages": [words[:1500]]}


def more(state: State) -> str:
    return "turn" if len(state["messages"]) % state["wanted"] else END


builder = StateGraph(State)
builder.add_node("turn", turn)
builder.add_edge(START, "turn")
builder.add_conditional_edges("turn", more, ["turn", END])
graph = builder.compile().with_config(recursion_limit=1000)
