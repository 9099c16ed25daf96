"""Agents of ADK as users make them, that note what they did: `DID` is what a user would see done twice."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from google.adk.agents import Agent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events.request_input import RequestInput
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, FunctionNode, JoinNode, Workflow
from google.genai import types

from agentvisor.testing import call
from agentvisor.testing.adk import ScriptedModel
from agentvisor.testing.script import Reply, Said

DID: list[str] = []


class Noting(ScriptedModel):
    """Notes each answer that it is asked for."""

    def _said(self, contents: list[types.Content]) -> Said:
        said = super()._said(contents)
        DID.append(f"model: {said.text or 'calls'}")
        return said


def pay(note: str, tool_context: ToolContext) -> str:
    """Pay."""
    DID.append(f"paid {note}")
    tool_context.state["paid"] = [*tool_context.state.get("paid", []), note]
    tool_context.state["user:payments"] = tool_context.state.get("user:payments", 0) + 1
    return f"receipt {note}"


def order(note: str) -> None:
    """Order; it takes days."""
    DID.append(f"ordered {note}")


def agent(name: str, script: Sequence[Reply], *tools: Any, **more: Any) -> Agent:
    return Agent(name=name, description=name, model=Noting(script), tools=list(tools), **more)


CONFIRMED = FunctionTool(pay, require_confirmation=True)
ORDER = LongRunningFunctionTool(order)


def one() -> Agent:
    """Two calls at once."""
    return agent("a", [[call("pay", note="1"), call("pay", note="2")], "a done"], pay)


def sequence() -> SequentialAgent:
    first = agent("a", [call("pay", note="1"), "a done"], pay)
    second = agent("b", [call("pay", note="2"), "b done"], pay)
    return SequentialAgent(name="seq", sub_agents=[first, second])


def loop() -> LoopAgent:
    turns = agent("a", [call("pay", note="1"), "a one", call("pay", note="2"), "a two"], pay)
    return LoopAgent(name="loop", max_iterations=2, sub_agents=[turns])


def confirmations() -> Agent:
    return agent("a", [[call("pay", note="1"), call("pay", note="2")], "a done"], CONFIRMED)


def confirmations_in_sequence() -> SequentialAgent:
    """The second of three agents asks twice at once."""
    first = agent("a", [call("pay", note="1"), "a done"], pay)
    second = agent("b", [[call("pay", note="2"), call("pay", note="3")], "b done"], CONFIRMED)
    return SequentialAgent(name="seq", sub_agents=[first, second, agent("c", ["c done"])])


def confirmations_in_parallel() -> ParallelAgent:
    first = agent("a", [call("pay", note="1"), "a done"], CONFIRMED)
    second = agent("b", [call("pay", note="2"), "b done"], CONFIRMED)
    return ParallelAgent(name="par", sub_agents=[first, second])


def orders_in_sequence() -> SequentialAgent:
    """One agent waits twice, one after the other."""
    first = agent("a", [call("order", note="1"), call("order", note="2"), "a done"], ORDER)
    return SequentialAgent(name="seq", sub_agents=[first, agent("c", ["c done"])])


def order_beside_payment() -> Agent:
    """One of two calls at once waits."""
    return agent("a", [[call("order", note="1"), call("pay", note="1")], "a done"], ORDER, pay)


def confirmation_beside_payment() -> Agent:
    """One of two calls at once has to be confirmed."""

    def ship(note: str) -> str:
        """Ship."""
        DID.append(f"shipped {note}")
        return "on its way"

    return agent("a", [[call("pay", note="1"), call("ship", note="1")], "a done"], CONFIRMED, ship)


def transferred() -> Agent:
    """The agent that asks was handed the conversation."""
    other = agent("s", [call("pay", note="1"), "s done"], CONFIRMED)
    return agent("root", [call("transfer_to_agent", agent_name="s"), "root done"], sub_agents=[other])


def start(node_input: Any) -> str:
    DID.append("started")
    return "begun"


async def ask(ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
    """Ask."""
    if "q" in ctx.resume_inputs:
        DID.append("asked")
        yield f"told {ctx.resume_inputs['q']}"
        return
    yield RequestInput(interrupt_id="q", message="how many?", payload={"x": 1}, response_schema={"type": "object"})


def question_in_a_tool() -> Agent:
    """A node that asks is a tool of the agent."""
    return agent("a", [call("ask", node_input="x"), "a done"], FunctionNode(func=ask, name="ask", rerun_on_resume=True))


def finish(node_input: Any) -> str:
    DID.append(f"finished {node_input}")
    return f"end of {node_input}"


def workflow() -> Workflow:
    asks = FunctionNode(func=ask, name="ask", rerun_on_resume=True)
    return Workflow(name="wf", edges=[(START, start, asks, finish)])


def workflow_of_agents() -> Workflow:
    first = agent("a", [call("pay", note="1"), "a done"], pay)
    second = agent("b", [call("pay", note="2"), "b done"], CONFIRMED)
    return Workflow(name="wf", edges=[(START, first, second, finish)])


def workflow_in_parallel() -> Workflow:
    first = agent("a", [call("pay", note="1"), "a done"], CONFIRMED)
    second = agent("b", [call("pay", note="2"), "b done"], CONFIRMED)
    return Workflow(name="wf", edges=[(START, (first, second), JoinNode(name="join"), finish)])


SHAPES: list[Callable[[], Any]] = [
    one,
    sequence,
    loop,
    confirmations,
    confirmations_in_sequence,
    confirmations_in_parallel,
    orders_in_sequence,
    order_beside_payment,
    confirmation_beside_payment,
    transferred,
    question_in_a_tool,
    workflow,
    workflow_of_agents,
    workflow_in_parallel,
]
