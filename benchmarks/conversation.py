"""The measured graph: a conversation that grows by one message of 1.5 KB in each super-step, durability "sync"."""

import random
import time
import uuid
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph

_RANDOM = random.Random(1)
_WORDS = ["".join(_RANDOM.choices("abcdefghijklmnop", k=_RANDOM.randint(2, 9))) for _ in range(3000)]
_MESSAGE_WORDS = 235
"""Of which a message has about 1.5 KB."""


class State(MessagesState):
    n: int


def measure(saver: BaseCheckpointSaver[Any], steps: int, config: dict[str, Any] | None) -> float:
    """Milliseconds per super-step of one conversation of that many super-steps."""
    words = random.Random(uuid.uuid4().int)

    def node(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage(" ".join(words.choices(_WORDS, k=_MESSAGE_WORDS)))], "n": state.get("n", 0) + 1}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda state: END if state["n"] >= steps else "node")
    graph = builder.compile(checkpointer=saver)
    given = {"recursion_limit": 100_000, **(config or {})}
    start = time.perf_counter()
    graph.invoke({"messages": [HumanMessage("hi")], "n": 0}, given, durability="sync")
    return (time.perf_counter() - start) / steps * 1e3


def agent(given: dict[str, int]) -> dict[str, float]:
    """The same inside a guest, with AgentVisor's checkpointer."""
    from agentvisor.langgraph import AgentVisorCheckpointer

    return {"milliseconds": measure(AgentVisorCheckpointer(), given["steps"], None)}
