"""A refund desk that asks before it pays, and a graph of three agents. Nothing here knows of AgentVisor but `once`.

Offline the models say what a script says; with ANTHROPIC_API_KEY set (pip install 'strands-agents[anthropic]') a real
one speaks.
"""

import os
from pathlib import Path

from strands import Agent, ToolContext, tool
from strands.multiagent import GraphBuilder
from strands.multiagent.graph import Graph

import agentvisor
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel

LEDGER = Path(__file__).parent / "ledger.txt"


def model(*script):
    """A real model where there is a key for one, else one that says what the script says."""
    if "ANTHROPIC_API_KEY" in os.environ:
        from strands.models.anthropic import AnthropicModel

        return AnthropicModel(model_id=os.environ.get("MODEL", "claude-sonnet-4-5"), max_tokens=1000)
    return ScriptedModel(list(script))


def write(line: str) -> str:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")
    return line


@tool
def look_up(order: str) -> str:
    """Look an order up."""
    return write(f"order {order} was delivered, and cost 12.50")


@tool(context=True)
def refund(order: str, amount: float, tool_context: ToolContext) -> str:
    """Pay an order back, when a person has agreed."""
    answer = tool_context.interrupt("approve", reason={"question": f"Refund {amount:.2f} for order {order}?"})
    if answer != "yes":
        return "a person has refused it"
    # Whatever dies, and whenever: this is paid once.
    return agentvisor.once(f"refund:{order}", lambda: write(f"{amount:.2f} paid for {order}"))


agent = Agent(
    name="refunds",
    model=model(
        ["I look it up.", call("look_up", order="7")],
        call("refund", order="7", amount=12.5),
        "Order 7 is refunded.",
    ),
    tools=[look_up, refund],
    system_prompt="You refund orders. Look each one up first.",
    callback_handler=None,
)


def report() -> Graph:
    """Two agents look into an order, a third one sums up what they say."""
    builder = GraphBuilder()
    for name, says in (("delivery", "Delivered."), ("payment", "Paid."), ("summary", "All is well.")):
        builder.add_node(Agent(name=name, model=model(says), callback_handler=None), name)
    builder.add_edge("delivery", "summary")
    builder.add_edge("payment", "summary")
    builder.set_max_node_executions(10)
    return builder.build()
