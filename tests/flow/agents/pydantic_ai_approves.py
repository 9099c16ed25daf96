"""An agent of Pydantic AI whose tool needs approval, made by a function."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from agents import signs
from agents.effects import effect


def respond(messages: list[Any], _: Any) -> ModelResponse:
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        if signs.read("fail"):
            raise ConnectionError("the model is away")
        return ModelResponse(parts=[TextPart(f"told {last.content}")])
    return ModelResponse(parts=[ToolCallPart("pay", {"amount": 1})])


async def made() -> Agent[None, str]:
    agent = Agent(FunctionModel(respond))

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        effect(f"paid {amount}")
        return f"receipt {amount}"

    return agent
