"""A refund desk: three checks in parallel, a question for a person, a payment. Nothing here knows of AgentVisor."""

import operator
import time
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class Refund(TypedDict, total=False):
    order: str
    amount: float
    findings: Annotated[list[str], operator.add]
    approved: bool
    receipt: str


def check(what: str, seconds: float):
    """A check that takes a while and is noted in a ledger, as a call to another service would be."""

    def run(state: Refund) -> Refund:
        time.sleep(seconds)
        note(f"{what} of {state['order']} checked")
        return {"findings": [f"{what} is in order"]}

    return run


def ask(state: Refund) -> Refund:
    question = f"Refund {state['amount']:.2f} for order {state['order']}?"
    return {"approved": interrupt({"question": question, "findings": sorted(state["findings"])}) == "yes"}


def pay(state: Refund) -> Refund:
    note(f"{state['amount']:.2f} paid for {state['order']}")
    return {"receipt": f"R-{state['order']}"}


def note(line: str) -> None:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(line + "\n")


builder = StateGraph(Refund)
builder.add_node("delivery", check("delivery", 0.1))
builder.add_node("payment", check("payment", 0.2))
builder.add_node("history", check("history", 1.0))
builder.add_node("ask", ask)
builder.add_node("pay", pay)
for name in ("delivery", "payment", "history"):
    builder.add_edge(START, name)
builder.add_edge(["delivery", "payment", "history"], "ask")
builder.add_conditional_edges("ask", lambda state: "pay" if state["approved"] else END, ["pay", END])
builder.add_edge("pay", END)
graph = builder.compile()
