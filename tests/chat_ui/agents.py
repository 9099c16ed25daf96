"""The agents that people chat with in the browser; no model is asked."""

import os
import time
from pathlib import Path
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt


def reply(state: MessagesState) -> dict[str, Any]:
    said = state["messages"][-1].text
    if said.startswith("hold "):
        _hold(Path(said.removeprefix("hold ")))
    number = sum(message.type == "human" for message in state["messages"])
    model = GenericFakeChatModel(messages=iter([AIMessage(f"answer number {number}")]))
    return {"messages": [model.invoke(state["messages"])]}


def _hold(place: Path) -> None:
    """Say which process this is, in its first attempt, and wait there to be killed."""
    if os.environ["AGENTVISOR_ATTEMPT"] == "1":
        place.write_text(f"{os.getpid()}\n")
        while True:
            time.sleep(0.05)


def ask(state: MessagesState) -> dict[str, Any]:
    """A question in the form of agent-chat-ui's inbox."""
    question = {
        "action_request": {"action": "send_mail", "args": {"to": "ada@example.com"}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": True},
        "description": "May this mail be sent?",
    }
    [answer] = interrupt([question])
    return {"messages": [AIMessage(f"the person said: {answer['type']}")]}


def _graph(node: Any) -> StateGraph[MessagesState]:
    builder = StateGraph(MessagesState)
    builder.add_node(node)
    builder.add_edge(START, node.__name__)
    return builder


chat = _graph(reply)
asking = _graph(ask)
