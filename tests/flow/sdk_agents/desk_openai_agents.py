"""Agents of the OpenAI Agents SDK that need approval, hand over, ask in agents that are tools, and die among calls."""

import asyncio
import os
import signal
from typing import Any, cast

from agents.guardrail import GuardrailFunctionOutput
from agents.tracing.traces import TraceImpl
from tests.flow.agents import signs
from tests.flow.agents.effects import effect

import agentvisor
import agentvisor.checkpoint
from agents import Agent, RunContextWrapper, Runner, function_tool, get_current_trace, input_guardrail
from agentvisor.testing import call
from agentvisor.testing.openai_agents import ScriptedModel
from agentvisor.testing.script import Reply


class Model(ScriptedModel):
    """Does what it hears last: each word of an input has its script."""

    def __init__(self, scripts: dict[str, list[Reply]]) -> None:
        super().__init__([])
        self._scripts = scripts

    def _hears(self, given: Any) -> list[Any]:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        at = max(number for number, one in enumerate(items) if one.get("role") == "user")
        outputs = [one for one in items[at:] if one.get("type") == "function_call_output"]
        if outputs and signs.read("fail"):
            raise ConnectionError("the model is away")
        last = " ".join(str(one["output"]) for one in outputs)
        said = str(items[at]["content"])
        script = self._scripts.get(said, [f"{self._scripts['name'][0]} heard {said}"])
        self._script = [f"told {last}" if one == "told" else one for one in script]
        return list(items[at:])

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        effect("asked the model")
        return await super().get_response(system_instructions, self._hears(input), *args, **options)

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        async for event in super().stream_response(system_instructions, self._hears(input), *args, **options):
            yield event


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    effect(f"paid {amount}")
    return f"receipt {amount}"


@function_tool
def note(what: str) -> str:
    """Finish."""
    if isinstance(get_current_trace(), TraceImpl):
        effect("traced")
    effect(f"noted {what}")
    return f"noted {what}"


@function_tool
async def charge(amount: int) -> str:
    """Charge once, and die the first time, when the other call of the reply is stored as done."""
    while not cast("Any", await agentvisor.checkpoint.aload(key="openai_agents"))["results"]:
        await asyncio.sleep(0.01)
    result = agentvisor.once("charge", lambda: effect(f"charged {amount}"))
    if os.environ["AGENTVISOR_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {result}"


@function_tool
def ask(what: str) -> str:
    """Ask a person twice."""
    return f"{agentvisor.interrupt(what)} and {agentvisor.interrupt('And?')}"


@function_tool(failure_error_function=None)
def fails() -> str:
    """Raise."""
    raise LookupError("no order 8")


@function_tool(needs_approval=True, failure_error_function=None)
async def refund() -> str:
    """Raise where it is told to, when the other call of the reply is stored as done."""
    while not cast("Any", await agentvisor.checkpoint.aload(key="openai_agents"))["results"]:
        await asyncio.sleep(0.01)
    if signs.read("no money"):
        raise LookupError("no money")
    effect("refunded")
    return "refunded"


@function_tool
def spoil(context: RunContextWrapper[Any]) -> str:
    """Put into the context what cannot be stored."""
    context.context["lock"] = object()
    return "spoilt"


@input_guardrail
async def harmless(context: Any, agent: Agent[Any], given: Any) -> GuardrailFunctionOutput:
    """Ask an agent of its own, which has the same model."""
    checked = await Runner.run(Agent("guard", model=MODEL), "harmless?")
    return GuardrailFunctionOutput(checked.final_output, tripwire_triggered=False)


MODEL = Model({
    "name": ["desk"],
    "harmless?": ["yes"],
    "pay": [call("pay", amount=1), "told"],
    "pay two": [[call("pay", amount=1), call("pay", amount=2), call("note", what="a")], "told"],
    "die among": [[call("note", what="a"), call("charge", amount=3)], "told"],
    "ask and pay": [[call("ask", what="Who?"), call("pay", amount=5), call("note", what="a")], "told"],
    "pay and refund": [[call("pay", amount=1), call("refund")], "told"],
    "fails": [call("fails")],
    "spoil": [[call("spoil"), call("pay", amount=1)], "told"],
    "over": [call("transfer_to_refunds")],
    "inner": [call("ask_cashier", input="pay inside"), "told"],
    "inner ask": [call("ask_cashier", input="ask inside"), "told"],
    "ask inside": [call("ask", what="How much?"), "told"],
    "pay inside": [call("pay", amount=7), "told"],
})  # fmt: skip
REFUNDS = Model({"name": ["refunds"], "over": [call("transfer_to_refunds"), "taken over"]})


def made() -> Agent[Any]:
    cashier: Agent[Any] = Agent("cashier", model=MODEL, tools=[pay, ask])
    refunds: Agent[Any] = Agent(signs.read("name") or "refunds", model=REFUNDS, tools=[note])
    tools = [pay, refund, note, charge, ask, fails, spoil, cashier.as_tool("ask_cashier", "Ask the cashier.")]
    return Agent("desk", model=MODEL, tools=tools, handoffs=[refunds], input_guardrails=[harmless])
