"""The runner contract's agent in Strands: its model does what it hears, in the user's file."""

from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, ToolContext, tool

from agents import contract_steps as steps
from agentvisor.testing import call
from agentvisor.testing.strands import ScriptedModel


@tool(context=True)
def ask(what: str, tool_context: ToolContext) -> str:
    """Ask a person."""
    return str(tool_context.interrupt(what, reason={"ask": what}))


@tool
def first() -> str:
    """A step that finishes."""
    steps.first()
    return "done"


@tool
def second() -> str:
    """A step in which the first process dies."""
    return steps.second()


@tool
def keep() -> dict[str, Any]:
    """Return what cannot be stored."""
    return {"status": "success", "content": [{"json": {"kept": steps.UNKEEPABLE}}]}


@tool
def wait() -> str:
    """Never return."""
    steps.wait()
    return ""


class Model(ScriptedModel):
    """Hears the inputs of the conversation, and what its tools returned since the last one."""

    def __init__(self) -> None:
        super().__init__([])

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        steps.begun()
        inputs = [at for at, one in enumerate(messages) if _is_input(one)]
        said = [messages[at]["content"][0]["text"] for at in inputs]
        results = [block.get("toolResult") for one in messages[inputs[-1] :] for block in one["content"]]
        # Strands puts the results of tools that were called together in the order in which they ended.
        ordered = sorted((one for one in results if one), key=lambda one: str(one["toolUseId"]))
        told = [one["content"][0].get("text", "") for one in ordered]
        at = sum(one["role"] == "assistant" for one in messages)
        self._script = [""] * at + [_reply(said, told)]
        async for event in super().stream(messages, *args, **options):
            yield event


def _is_input(message: Any) -> bool:
    return message["role"] == "user" and any("text" in block for block in message["content"])


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
        case "keep", []:
            return call("keep")
        case "wait", []:
            return call("wait")
        case "stream", _:
            return " ".join(steps.WORDS)
    return f"{len(said)}: {said[-1]}"


agent = Agent(model=Model(), tools=[ask, first, second, keep, wait], callback_handler=None)
