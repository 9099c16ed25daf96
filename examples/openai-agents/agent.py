"""A front desk that hands refunds over to an agent that needs approval before it pays. Only `once` knows of AgentVisor.

Offline the models say what a script says; with OPENAI_API_KEY set a real one speaks.
"""

import os
from pathlib import Path

import agentvisor
from agents import Agent, function_tool
from agentvisor.testing import call
from agentvisor.testing.openai_agents import ScriptedModel

LEDGER = Path(__file__).parent / "ledger.txt"


def model(*script):
    """A real model where there is a key for one, else one that says what the script says."""
    if "OPENAI_API_KEY" in os.environ:
        return os.environ.get("MODEL")
    return ScriptedModel(list(script))


def write(line: str) -> str:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")
    return line


@function_tool
def look_up(order: str) -> str:
    """Look an order up."""
    return write(f"order {order} was delivered, and cost 12.50")


@function_tool(needs_approval=True)
def refund(order: str, amount: float) -> str:
    """Pay an order back."""
    # Whatever dies, and whenever: this is paid once.
    return agentvisor.once(f"refund:{order}", lambda: write(f"{amount:.2f} paid for {order}"))


refunds = Agent(
    "refunds",
    instructions="You refund orders. Look each one up first.",
    # The n-th reply of the whole conversation: the first was the desk's.
    model=model(
        "",
        ["I look it up.", call("look_up", order="7")],
        call("refund", order="7", amount=12.5),
        "Order 7 is refunded.",
    ),
    tools=[look_up, refund],
)

agent = Agent(
    "desk",
    instructions="You are the front desk. Hand refunds over.",
    model=model(call("transfer_to_refunds")),
    handoffs=[refunds],
)
