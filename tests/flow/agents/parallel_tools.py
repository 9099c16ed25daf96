"""Agents that call two tools at once, one of which never returns; a model as strict as a provider hears of it later."""

import time
from typing import Any

from langchain.agents import create_agent
from langgraph.prebuilt import create_react_agent

from agents.effects import effect
from agentvisor.langgraph import RepairMiddleware, repair_hook
from agentvisor.testing import call
from agentvisor.testing.langgraph import ScriptedChatModel


def quick() -> str:
    """Return at once."""
    effect("did quick")
    return "quick is done"


def stuck() -> str:
    """Never return."""
    effect("began stuck")
    while True:
        time.sleep(0.05)


TOOLS: Any = [quick, stuck]
model = ScriptedChatModel([[call("quick"), call("stuck")], "Understood."])

unrepaired = create_agent(model, TOOLS)
middleware = create_agent(model, TOOLS, middleware=[RepairMiddleware()])
hook = create_react_agent(model, TOOLS, pre_model_hook=repair_hook)
