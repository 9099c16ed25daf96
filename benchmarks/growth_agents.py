"""Two agents whose state grows: a conversation, and one that calls tools (50 turns of 1.8 KB of text each)."""

import random
import uuid
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

_RANDOM = random.Random(7)
_WORDS = ["".join(_RANDOM.choices("abcdefghijklmnop", k=_RANDOM.randint(2, 9))) for _ in range(3000)]


def text(size: int) -> str:
    words = random.Random(uuid.uuid4().int)
    return " ".join(words.choices(_WORDS, k=size // 6))[:size]


def _count(old: int, new: int) -> int:
    return old + new


class State(MessagesState):
    n: Annotated[int, _count]


def conversation(saver: Any, messages: int) -> Any:
    """A graph that adds a message in each super-step, until there are that many."""
    builder = StateGraph(State)
    builder.add_node("answer", lambda _: {"messages": [AIMessage(text(1500))], "n": 1})
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", lambda state: END if state["n"] >= messages else "answer")
    return builder.compile(checkpointer=saver)


def tool_user(saver: Any) -> Any:
    """A turn is the model, a tool, the model again."""

    def model(state: State) -> dict[str, Any]:
        last = state["messages"][-1]
        if isinstance(last, HumanMessage):
            call = {"name": "look_up", "args": {"what": text(200)}, "id": str(uuid.uuid4())}
            return {"messages": [AIMessage(text(200), tool_calls=[call])], "n": 1}
        return {"messages": [AIMessage(text(600))], "n": 1}

    def tool(state: State) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(text(800), tool_call_id=call["id"])]}

    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("tool", tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tool" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


def grow(saver: Any, kind: str, config: dict[str, Any]) -> int:
    """Run it; the size of the final state, serialised."""
    if kind == "conversation":
        graph = conversation(saver, 400)
        graph.invoke({"messages": [HumanMessage("hi")], "n": 0}, {"recursion_limit": 1000, **config})
    else:
        graph = tool_user(saver)
        for _ in range(50):
            graph.invoke({"messages": [HumanMessage(text(200))], "n": 0}, {"recursion_limit": 100, **config})
    found = graph.get_state(config).values
    return sum(len(saver.serde.dumps_typed(value)[1]) for value in found.values())


def agent(given: dict[str, str]) -> dict[str, int]:
    """As an agent of a host."""
    from agentvisor.langgraph import AgentVisorCheckpointer

    saver = AgentVisorCheckpointer()
    return {"state": grow(saver, given["kind"], {"configurable": {"thread_id": given["thread"]}})}
