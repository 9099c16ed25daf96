"""Agents of Google ADK as users write them: nothing here knows of AgentVisor but what a test reads and tells."""

import os
import signal
from typing import Any

from google.adk.agents import Agent, SequentialAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types

import agentvisor
from agents import signs
from agents.effects import effect
from agentvisor.adk import AgentVisorSessionService
from agentvisor.testing import call
from agentvisor.testing.adk import ScriptedModel
from agentvisor.testing.script import Said


class Noting(ScriptedModel):
    """Notes what it is asked."""

    def _said(self, contents: list[types.Content]) -> Said:
        asked = [part.text for one in contents if one.role == "user" for part in one.parts or [] if part.text]
        effect(f"model asked {asked[-1]!r} after {sum(one.role == 'model' for one in contents)}")
        return super()._said(contents)


def agent(name: str, script: list[Any], *tools: Any) -> Agent:
    return Agent(name=name, model=Noting(script), tools=list(tools))


# --- memory ----------------------------------------------------------------------------------------------------------


def remember(what: str, tool_context: ToolContext) -> str:
    """Remember something."""
    tool_context.state["last"] = what
    tool_context.state["user:known"] = [*tool_context.state.get("user:known", []), what]
    return "remembered"


chat = agent("chat", [[call("remember", what="Bob")], "Hello Bob.", "You are Bob."], remember)


# --- people ----------------------------------------------------------------------------------------------------------


def refund(order: str) -> str:
    """Refund an order."""
    effect(f"refunded {order}")
    return f"refunded {order}"


def ship(order: str) -> None:
    """Ship an order; the carrier tells when it is there."""
    effect(f"shipped {order}")


refunds = App(
    name="refunds",
    root_agent=agent(
        "desk",
        [[call("refund", order="7"), call("refund", order="8")], "Both are settled.", "As you like."],
        FunctionTool(refund, require_confirmation=True),
    ),
)
shipping = agent("shipping", [call("ship", order="7"), "It is there."], LongRunningFunctionTool(ship))


def doubtful(order: str) -> str:
    """Ask twice in the middle of a tool."""
    return f"{agentvisor.interrupt(f'Sure of {order}?')}, {agentvisor.interrupt(f'Really {order}?')}"


mixed = agent(
    "mixed",
    [[call("ship", order="7"), call("doubtful", order="8")], "All is told."],
    LongRunningFunctionTool(ship),
    doubtful,
)


# --- death -----------------------------------------------------------------------------------------------------------


def look(order: str, tool_context: ToolContext) -> str:
    """Look an order up."""
    effect(f"looked {order}")
    tool_context.state["order"] = order
    return "found"


def pay(order: str) -> str:
    """Pay; waits for the test."""
    effect(f"began paying {order}")
    signs.wait_for("gate")
    return str(agentvisor.once("payment", lambda: _paid(order)))


def _paid(order: str) -> str:
    effect(f"paid {order}")
    return f"receipt of {order}"


def sequence() -> SequentialAgent:
    """Two agents, one after the other."""
    first = agent("first", [call("look", order="7"), "Found it.", "Found it before."], look)
    second = agent("second", [call("pay", order="7"), "Paid."], pay)
    return SequentialAgent(name="sequence", sub_agents=[first, second])


workflow = Workflow(
    name="workflow",
    edges=[
        (
            START,
            agent("first", [call("look", order="7"), "Found it."], look),
            agent("second", [call("pay", order="7"), "Paid."], pay),
        )
    ],
)


def charge(order: str) -> str:
    """Charge; the first process dies behind the charge, before anybody knows of it."""
    agreed = agentvisor.interrupt(f"Charge order {order}?")
    return f"{agentvisor.once('charge', lambda: _charged(order))}, {agreed}"


def _charged(order: str) -> str:
    effect(f"charged {order}")
    if not signs.read("charged"):
        signs.sign("charged").write_text("yes")
        os.kill(os.getpid(), signal.SIGKILL)
    return "charged"


charging = agent("charging", [call("charge", order="7"), "Charged."], charge)


async def by_hand(given: str) -> int:
    """A function that runs an agent by itself, with the session service: how much it remembers."""
    service = AgentVisorSessionService()
    async with Runner(
        app_name="mine", agent=agent("mine", ["one", "two"]), session_service=service, auto_create_session=True
    ) as runner:
        message = types.Content(role="user", parts=[types.Part(text=given)])
        async for _ in runner.run_async(user_id="me", session_id="s", new_message=message):
            pass
    session = await service.get_session(app_name="mine", user_id="me", session_id="s")
    return len(session.events) if session else 0


# --- errors ----------------------------------------------------------------------------------------------------------


def fails(order: str) -> str:
    """Fail until the test says otherwise."""
    effect(f"tried {order}")
    if not signs.read("repaired"):
        raise LookupError(f"no order {order}")
    return "found"


failing = agent("failing", [call("fails", order="7"), "Found after all."], fails)
