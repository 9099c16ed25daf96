"""The runner contract's agent with Pydantic AI (test_runner_contract.py says what it has to do)."""

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, CallDeferred
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents import contract_steps as steps


def _parts(messages: list[Any]) -> Any:
    """What the model says next: text, or calls by their tools, each with its arguments."""
    steps.begun()
    requests = [one for one in messages if isinstance(one, ModelRequest)]
    inputs = [(at, part.content) for at, one in enumerate(requests) for part in one.parts
              if isinstance(part, UserPromptPart)]  # fmt: skip
    since, said = inputs[-1]
    told = [part.content for one in requests[since:] for part in one.parts if isinstance(part, ToolReturnPart)]
    match said, told:
        case "ask", []:
            return [("ask", {"what": "Which?"})]
        case "ask", [answer]:
            return f"heard {answer}"
        case "ask two", []:
            return [("ask", {"what": "left?"}), ("ask", {"what": "right?"})]
        case "ask two", [left, right]:
            return f"heard left {left}, right {right}"
        case "die", []:
            return [("first", {})]
        case "die", ["done"]:
            return [("second", {})]
        case "die", [_, survived]:
            return survived
        case "fail", _:
            steps.fail()
        case ("keep" | "wait") as tool, []:
            return [(tool, {})]
        case "stream", _:
            return " ".join(steps.WORDS)
    return f"{len(inputs)}: {said}"


def respond(messages: list[Any], _: Any) -> ModelResponse:
    parts = _parts(messages)
    if isinstance(parts, str):
        return ModelResponse(parts=[TextPart(parts)])
    return ModelResponse(parts=[ToolCallPart(tool, args) for tool, args in parts])


async def stream(messages: list[Any], _: Any) -> AsyncIterator[Any]:
    parts = _parts(messages)
    if isinstance(parts, str):
        for word in parts.split(" "):
            yield f"{word} "
    else:
        yield {at: DeltaToolCall(tool, str(args).replace("'", '"')) for at, (tool, args) in enumerate(parts)}


agent = Agent(FunctionModel(respond, stream_function=stream), name="contract")


@agent.tool_plain
def ask(what: str) -> str:
    """Ask a person."""
    raise CallDeferred


@agent.tool_plain
def first() -> str:
    """A step that finishes."""
    steps.first()
    return "done"


@agent.tool_plain
def second() -> str:
    """A step in which the first process dies."""
    return steps.second()


@agent.tool_plain
def keep() -> Any:
    """Return what cannot be stored."""
    return steps.UNKEEPABLE


@agent.tool_plain
def wait() -> str:
    """Never return."""
    steps.wait()
    return ""
