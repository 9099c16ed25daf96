"""An agent whose script calls two tools at once; each leaves a line outside, where its death cannot undo it."""

import os
from pathlib import Path

from langchain.agents import create_agent

from agentvisor.testing import call
from agentvisor.testing.langgraph import ScriptedChatModel


def ledger(line: str) -> None:
    with Path(os.environ["LEDGER"]).open("a") as file:
        file.write(f"{os.environ['AGENTVISOR_THREAD_ID']} {line}\n")


def check(order: str) -> str:
    """Check an order."""
    ledger(f"checked {order}")
    return "fine"


def pay(order: str) -> str:
    """Pay an order back."""
    ledger(f"paid {order}")
    return "paid"


model = ScriptedChatModel([[call("check", order="7"), call("check", order="8")], call("pay", order="7"), "Done."])
graph = create_agent(model, [check, pay])
