"""A refund desk with Google ADK: one agent looks an order up, a second one pays it back once a person has agreed.

Without a key a script stands in for the model; with GOOGLE_API_KEY in the agent's environment (agentvisor.yaml) it is
Gemini.
"""

import os
from pathlib import Path

from google.adk.agents import Agent, SequentialAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.tools import FunctionTool, ToolContext

from agentvisor.testing import call
from agentvisor.testing.adk import ScriptedModel
from agentvisor.testing.script import Reply

ORDERS = {"7": 12.5, "8": 3.0}


def look_up(order: str, tool_context: ToolContext) -> dict[str, object]:
    """Look an order up; what was paid for it is in euros."""
    note(f"looked {order} up")
    tool_context.state["order"] = order
    return {"order": order, "paid": ORDERS.get(order, 0.0)}


def refund(order: str, amount: float) -> dict[str, object]:
    """Pay back what was paid for an order, in euros."""
    note(f"{amount:.2f} paid for {order}")
    return {"receipt": f"R-{order}"}


def note(line: str) -> None:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(line + "\n")


def model(script: list[Reply]) -> str | BaseLlm:
    return "gemini-2.5-flash" if "GOOGLE_API_KEY" in os.environ else ScriptedModel(script)


clerk = Agent(
    name="clerk",
    instruction="Look up the order that the user names, and say what was paid for it.",
    model=model([call("look_up", order="7"), "12.50 was paid for order 7."]),
    tools=[look_up],
)
cashier = Agent(
    name="cashier",
    instruction="Refund what the clerk found out was paid for the order. Then name the receipt.",
    model=model([call("refund", order="7", amount=12.5), "It is paid back: receipt R-7."]),
    tools=[FunctionTool(refund, require_confirmation=True)],
)
root_agent = SequentialAgent(name="desk", sub_agents=[clerk, cashier])
