"""An ordinary LangGraph agent: a model that calls tools in parallel, tools with side effects, a question for a person.

The model is scripted, so that the demonstration needs no network; nothing in this file knows of AgentVisor.
"""

import json
import operator
import os
import time
import urllib.request
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt

SERVICES = ("billing", "search", "mail")
TOOL_SECONDS = float(os.environ.get("DEMO_TOOL_SECONDS", "1.5"))


class ScriptedModel(BaseChatModel):
    """Answers by how often it has answered before: stands in for a model behind an API."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        script = [("scan", SERVICES), ("build", SERVICES), ("announce", SERVICES)]
        if turn < len(script):
            tool, services = script[turn]
            calls = [ToolCall(name=tool, args={"service": name}, id=f"{tool}-{name}") for name in services]
            reply = AIMessage(f"I will {tool} {', '.join(services)}.", tool_calls=calls)
        else:
            reply = AIMessage("Everything is scanned, built and announced. Shall I deploy?")
        return ChatResult(generations=[ChatGeneration(message=reply)])


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[str], operator.add]
    decision: str


def tell(what: str, phase: str) -> None:
    """The side effect: a counter outside the agent hears of it."""
    body = json.dumps({"what": what, "phase": phase, "pid": os.getpid()}).encode()
    urllib.request.urlopen(urllib.request.Request(os.environ["DEMO_COUNTER"], body), timeout=5).close()


def model(state: State) -> State:
    return {"messages": [ScriptedModel().invoke(state["messages"])]}


def tool(call: ToolCall) -> State:
    service = call["args"]["service"]
    what = f"{call['name']} {service}"
    tell(what, "begun")
    # One service is slower than the others, so that a super-step has a middle.
    time.sleep(TOOL_SECONDS * (3 if service == SERVICES[-1] else 1))
    tell(what, "finished")
    return {"messages": [ToolMessage(f"{what}: ok", tool_call_id=call["id"])], "done": [what]}


def approval(state: State) -> State:
    decision = interrupt({"question": "Deploy?", "done": state["done"], "options": ["approve", "reject"]})
    return {"decision": decision}


def deploy(state: State) -> State:
    if state["decision"] == "approve":
        tell("deploy", "begun")
        tell("deploy", "finished")
        return {"messages": [AIMessage("Deployed.")], "done": ["deploy"]}
    return {"messages": [AIMessage("Not deployed.")]}


def after_model(state: State) -> list[Send] | str:
    calls = getattr(state["messages"][-1], "tool_calls", None)
    return [Send("tool", call) for call in calls] if calls else "approval"


builder = StateGraph(State)
builder.add_node("model", model)
builder.add_node("tool", tool)
builder.add_node("approval", approval)
builder.add_node("deploy", deploy)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", after_model, ["tool", "approval"])
builder.add_edge("tool", "model")
builder.add_edge("approval", "deploy")
builder.add_edge("deploy", END)
graph = builder.compile()
