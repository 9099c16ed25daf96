"""A support desk with a model: it looks an order up, and pays it back once a person has said yes.

Without a key the model is a script; with ANTHROPIC_API_KEY or OPENAI_API_KEY it is a real one, MODEL names which.
"""

import os
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.chat_models import init_chat_model

import agentvisor
from agentvisor.langgraph import RepairMiddleware
from agentvisor.testing import call
from agentvisor.testing.langgraph import ScriptedChatModel

REAL = {"ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5", "OPENAI_API_KEY": "openai:gpt-5-mini"}
SCRIPT = [
    ["Let me see.", call("look_up", order="7")],
    call("pay_back", order="7", amount=12.5),
    "You have your money back.",
]


def model():
    for key, name in REAL.items():
        if os.environ.get(key):
            return init_chat_model(os.environ.get("MODEL", name))
    return ScriptedChatModel(SCRIPT)


def look_up(order: str) -> str:
    """Look an order up: what it cost, and whether it arrived."""
    agentvisor.progress({"looking_up": order})
    return f"order {order}: 12.50, not delivered"


def pay_back(order: str, amount: float) -> str:
    """Pay an amount back for an order."""

    def pay() -> str:
        with Path("payments.txt").open("a") as payments:
            payments.write(f"{amount:.2f} for order {order}\n")
        return f"paid {amount:.2f}"

    # Whatever dies in between, it is not paid twice.
    return agentvisor.once(f"pay-back-{order}", pay)


def make():
    leave = HumanInTheLoopMiddleware(interrupt_on={"pay_back": {"allowed_decisions": ["approve", "edit", "reject"]}})
    return create_agent(
        model(),
        [look_up, pay_back],
        system_prompt="You are a support desk. Look the order up, and pay it back where it did not arrive.",
        middleware=[leave, RepairMiddleware()],
    )
