"""Strands agents as a user writes them, for AgentVisor's own runner; they die where the test says so (charges.py)."""

import os
import signal
from typing import Any

from strands import Agent, ToolContext, tool
from strands.multiagent import GraphBuilder, Swarm

import agentvisor
from agents import signs
from agents.effects import effect
from agents.strands_charges import NewIds, pay
from agentvisor import checkpoint
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel


@tool
def work(note: str) -> str:
    """Work, and die in the middle of it where the sign says so, once."""
    effect(f"began {note}")
    if signs.read("die") == note:
        signs.sign("die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    effect(f"did {note}")
    return f"worked {note}"


@tool
def hold(note: str) -> str:
    """Work until the test says that it is over."""
    effect(f"began {note}")
    signs.wait_for("gate")
    effect(f"did {note}")
    return "held"


@tool(context=True)
def approve(what: str, tool_context: ToolContext) -> str:
    """Ask a person."""
    answer = tool_context.interrupt("approve", reason={"what": what})
    effect(f"{what} {answer}")
    return f"{what}: {answer}"


@tool
def note() -> str:
    """Save something of the agent's own."""
    checkpoint.save("mine", {"noted": True})
    return "noted"


def agent(*script: Any, name: str = "agent", tools: Any = (work, hold, approve, note)) -> Agent:
    return Agent(model=ScriptedModel(list(script)), tools=list(tools), name=name, agent_id=name, callback_handler=None)


def node(name: str) -> Agent:
    return agent(call("work", note=name), f"{name} is done.", name=name)


pays = Agent(
    model=NewIds([call("pay", note="first"), call("pay", note="second"), "Paid twice."]),
    tools=[pay],
    callback_handler=None,
)
"""Charges the same card by two tool uses."""

together = agent([call("work", note="left"), call("work", note="right")], "Both.")
asks = agent(["Let me see.", call("approve", what="refund")], "Well.", "Fine.")
notes = agent(call("note"), "Noted.", "You are Bob.")


holds = agent(call("hold", note="hold"), call("work", note="after"), "Held.", "And on.")


def holding():  # type: ignore[no-untyped-def]
    """A graph whose second node holds."""
    builder = GraphBuilder()
    builder.add_node(node("a"), "a")
    builder.add_node(agent(call("hold", note="b"), "b is done.", name="b"), "b")
    builder.add_node(node("c"), "c")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    return builder.build()


def line():  # type: ignore[no-untyped-def]
    """A graph; nothing but the imports of this module says so."""
    builder = GraphBuilder()
    for name in ("a", "b", "c"):
        builder.add_node(node(name), name)
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.set_entry_point("a")
    return builder.build()


def asking() -> Swarm:
    """A swarm whose second agent asks."""
    hand = call("handoff_to_agent", agent_name="two", message="Go on.")
    one = agent(call("work", note="one"), hand, "Handed.", name="one")
    two = agent(call("approve", what="two"), call("work", note="two"), "two is done.", name="two")
    return Swarm([one, two])


def nested():  # type: ignore[no-untyped-def]
    """That swarm as a node, whose question is two graphs deep."""
    builder = GraphBuilder()
    builder.add_node(node("a"), "a")
    builder.add_node(asking(), "swarm")
    builder.add_edge("a", "swarm")
    return builder.build()


@tool
def overdue() -> str:
    """Ask with a deadline that passes, and go on with its default."""
    return str(agentvisor.interrupt("Go on?", deadline=0.2, on_deadline="answer", default_answer="by default"))


waits = agent(call("overdue"), "Went on.", tools=[overdue])
inner = agent(call("overdue"), "Went on.", name="inner", tools=[overdue])
waits_inside = agent(call("inner", input="Ask."), "The other one did.", tools=[inner.as_tool(preserve_context=True)])
