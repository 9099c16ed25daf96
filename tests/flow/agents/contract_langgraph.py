"""The runner contract's agent as a LangGraph graph (test_runner_contract.py says what it has to do)."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from agents import contract_steps as steps


class State(TypedDict, total=False):
    say: str
    heard: Annotated[list[str], operator.add]
    sides: Annotated[list[str], operator.add]
    kept: object
    reply: str


def hear(state: State) -> Command[Any]:
    steps.begun()
    said = state["say"]
    begun = {"heard": [said]}
    match said:
        case "fail":
            steps.fail()
        case "wait":
            steps.wait()
        case "keep":
            return Command(update={**begun, "kept": steps.UNKEEPABLE}, goto="reply")
        case "ask":
            return Command(update=begun, goto="ask")
        case "ask two":
            return Command(update=begun, goto=[Send("side", {"say": side}) for side in ("left", "right")])
        case "die":
            return Command(update=begun, goto="first")
        case "stream":
            for word in steps.WORDS:
                get_stream_writer()({"word": word})
    return Command(update=begun, goto="reply")


def ask(state: State) -> State:
    return {"reply": f"heard {interrupt('Which?')}"}


def side(state: State) -> State:
    return {"sides": [f"{state['say']} {interrupt(state['say'] + '?')}"]}


def join(state: State) -> State:
    return {"reply": f"heard {', '.join(sorted(state['sides'][-2:]))}"}


def first(state: State) -> State:
    steps.first()
    return {}


def second(state: State) -> State:
    return {"reply": steps.second()}


def reply(state: State) -> State:
    return {"reply": f"{len(state['heard'])}: {state['say']}"}


builder = StateGraph(State)
for node in (hear, ask, side, join, first, second, reply):
    builder.add_node(node)
builder.add_edge(START, "hear")
builder.add_edge("side", "join")
builder.add_edge("first", "second")
for last in ("ask", "join", "second", "reply"):
    builder.add_edge(last, END)
agent = builder.compile()
