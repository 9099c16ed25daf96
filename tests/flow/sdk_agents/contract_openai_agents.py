"""The runner contract's agent with the OpenAI Agents SDK (test_runner_contract.py says what it has to do).

Not in `agents/`: the SDK's package is named so, and would not be found from there.
"""

from collections.abc import AsyncIterator
from typing import Any

from tests.flow.agents import contract_steps as steps

import agentvisor
from agents import Agent, function_tool
from agentvisor.testing import call
from agentvisor.testing.openai_agents import ScriptedModel


class Model(ScriptedModel):
    """Hears the inputs of the conversation, and what its tools returned since the last one."""

    def __init__(self) -> None:
        super().__init__([])

    def _hears(self, given: Any) -> None:
        steps.begun()
        inputs = [at for at, one in enumerate(given) if one.get("role") == "user"]
        said = [given[at]["content"] for at in inputs]
        told = [one["output"] for one in given[inputs[-1] :] if one.get("type") == "function_call_output"]
        self._script = [_reply(said, told)] * (len(given) + 1)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
        self._hears(input)
        return await super().get_response(system_instructions, input, *args, **options)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> AsyncIterator[Any]:
        self._hears(input)
        async for event in super().stream_response(system_instructions, input, *args, **options):
            yield event


def _reply(said: list[str], told: list[str]) -> Any:
    match said[-1], told:
        case "ask", []:
            return call("ask", what="Which?")
        case "ask", [answer]:
            return f"heard {answer}"
        case "ask two", []:
            return [call("ask", what="left?"), call("ask", what="right?")]
        case "ask two", [left, right]:
            return f"heard left {left}, right {right}"
        case "die", []:
            return call("first")
        case "die", ["done"]:
            return call("second")
        case "die", [_, survived]:
            return survived
        case "fail", _:
            steps.fail()
        case ("keep" | "wait") as tool, []:
            return call(tool)
        case "stream", _:
            return " ".join(steps.WORDS)
    return f"{len(said)}: {said[-1]}"


@function_tool
def ask(what: str) -> str:
    """Ask a person."""
    return str(agentvisor.interrupt(what))


@function_tool
def first() -> str:
    """A step that finishes."""
    steps.first()
    return "done"


@function_tool
def second() -> str:
    """A step in which the first process dies."""
    return steps.second()


@function_tool
def keep() -> Any:
    """Return what cannot be stored."""
    return steps.UNKEEPABLE


@function_tool
def wait() -> str:
    """Never return."""
    steps.wait()
    return ""


agent: Agent[Any] = Agent("contract", model=Model(), tools=[ask, first, second, keep, wait])
