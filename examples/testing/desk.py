"""A support desk with any model: it looks two things up at once, then pays an order back."""

import os
import time
from pathlib import Path

from langchain.agents import create_agent

from agentvisor.langgraph import RepairMiddleware

HERE = Path(__file__).parent


def look_up(what: str) -> str:
    """Look up the order, or the customer, which takes longer."""
    time.sleep(0.5 if what == "customer" else 0)
    with (HERE / "looked_up.txt").open("a") as file:
        file.write(f"{os.environ['AGENTVISOR_THREAD_ID']} {what}\n")
    return f"the {what} is in order"


def pay(order: str) -> str:
    """Pay an order back."""
    # As payment services do: what is asked for twice under one key happens once.
    key = f"{os.environ['AGENTVISOR_THREAD_ID']}-{order}"
    (HERE / "payments").mkdir(exist_ok=True)
    (HERE / "payments" / key).touch(exist_ok=True)
    return "paid"


def make(model):
    return create_agent(model, [look_up, pay], middleware=[RepairMiddleware()])
