"""A deep agent whose subagent pays, with a person's leave; and `create_agent` with the same tool. Scripted models."""

from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware

from agents.effects import effect
from agentvisor.testing import call
from agentvisor.testing.langgraph import ScriptedChatModel

LEAVE = {"pay": {"allowed_decisions": ["approve", "edit", "reject"]}, "look_up": False}


def look_up(order: str) -> str:
    """Look an order up."""
    effect(f"looked {order} up")
    return f"order {order} is fine"


def pay(order: str, amount: int) -> str:
    """Pay an order back."""
    effect(f"paid {amount} for {order}")
    return f"paid {amount}"


PAYING = [
    [call("look_up", order="7"), call("pay", order="7", amount=10), call("pay", order="8", amount=20)],
    "The payer is done.",
]


def deep() -> Any:
    """Writes a file, lets the subagent pay two orders, and says what is in the file."""
    payer = {
        "name": "payer",
        "description": "Pays orders back.",
        "system_prompt": "You pay.",
        "tools": [look_up, pay],
        "model": ScriptedChatModel(PAYING),
        "interrupt_on": LEAVE,
    }
    script = [
        call("write_file", file_path="/notes.md", content="order 7 and 8"),
        call("task", description="Pay 7 and 8 back.", subagent_type="payer"),
        call("read_file", file_path="/notes.md"),
        "All is done.",
        call("edit_file", file_path="/notes.md", old_string="order 7 and 8", new_string="nothing is left"),
        "Noted.",
    ]
    return create_deep_agent(model=ScriptedChatModel(script), subagents=[payer])


def two() -> Any:
    """Two subagents at once: each looks its own order up, and asks for leave to pay it."""
    subagents = [
        {
            "name": f"payer{order}",
            "description": f"Pays order {order} back.",
            "system_prompt": "You pay.",
            "tools": [look_up, pay],
            "model": ScriptedChatModel(
                [call("look_up", order=order), call("pay", order=order, amount=10), f"{order} is settled."]
            ),
            "interrupt_on": LEAVE,
        }
        for order in ("7", "8")
    ]
    tasks = [call("task", description=f"Pay {order}.", subagent_type=f"payer{order}") for order in ("7", "8")]
    return create_deep_agent(model=ScriptedChatModel([tasks, "All is done."]), subagents=subagents)


def single() -> Any:
    """`create_agent` with the same tools and the same leave."""
    return create_agent(
        ScriptedChatModel([*PAYING, "Good bye."]),
        [look_up, pay],
        middleware=[HumanInTheLoopMiddleware(interrupt_on=LEAVE)],
    )
