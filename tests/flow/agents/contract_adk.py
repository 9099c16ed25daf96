"""The runner contract's agent with Google ADK (test_runner_contract.py says what it has to do)."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools._request_input_tool import request_input
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from agents import contract_steps as steps

CALLS = {"die": [["first"], ["second"]], "fail": [["fail"]], "keep": [["keep"]], "wait": [["wait"]]}
"""What the model calls for an input, one turn after the other."""
QUESTIONS = {"ask": ["Which?"], "ask two": ["left?", "right?"]}


def first() -> str:
    """A step that finishes."""
    steps.first()
    return "done"


def second() -> str:
    """A step in which the first process dies."""
    return steps.second()


def fail() -> None:
    """Raise."""
    steps.fail()


def keep(tool_context: ToolContext) -> str:
    """Store what cannot be stored."""
    tool_context.state["kept"] = steps.UNKEEPABLE
    return "kept"


def wait() -> None:
    """Never return."""
    steps.wait()


class Brain(BaseLlm):
    """Says what the contract asks for."""

    model: str = "contract"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 (ADK's signature)
    ) -> AsyncGenerator[LlmResponse, None]:
        texts = [at for at, one in enumerate(llm_request.contents) if one.role == "user" and _text(one)]
        said = _text(llm_request.contents[texts[-1]])
        answers = [
            part.function_response.response or {}
            for one in llm_request.contents[texts[-1] :]
            for part in one.parts or []
            if part.function_response
        ]
        steps.begun()
        turns = CALLS.get(said, [])
        if len(answers) < len(turns):
            yield _said(*(types.Part.from_function_call(name=name, args={}) for name in turns[len(answers)]))
        elif said in QUESTIONS and not answers:
            asked = [{"message": question} for question in QUESTIONS[said]]
            yield _said(*(types.Part.from_function_call(name="adk_request_input", args=one) for one in asked))
        elif said == "stream":
            for word in steps.WORDS if stream else ():
                yield LlmResponse(content=_said(types.Part(text=f"{word} ")).content, partial=True)
            yield _said(types.Part(text=" ".join(steps.WORDS)))
        else:
            yield _said(types.Part(text=_reply(said, len(texts), answers)))


def _reply(said: str, heard: int, answers: list[Any]) -> str:
    told = [one.get("result") for one in answers]
    match said:
        case "ask":
            return f"heard {told[0]}"
        case "ask two":
            return f"heard left {told[0]}, right {told[1]}"
        case "die":
            return str(told[1])
        case _:
            return f"{heard}: {said}"


def _text(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts or [])


def _said(*parts: types.Part) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=list(parts)))


agent = Agent(name="contract", model=Brain(), tools=[first, second, fail, keep, wait, request_input])
