"""Graphs that the tests run in guests."""

import operator
import os
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt


class State(TypedDict):
    messages: Annotated[list, add_messages]
    seen: Annotated[list, operator.add]
    steps: int


def step(state):
    return {"messages": [("ai", f"step {state.get('steps', 0)}")], "seen": ["step"], "steps": state.get("steps", 0) + 1}


conversation = StateGraph(State)
conversation.add_node("step", step)
conversation.add_edge(START, "step")
conversation.add_conditional_edges("step", lambda state: END if state["steps"] >= 3 else "step")
graph = conversation.compile()
