"""A model that says what a script says: for Google ADK agents under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from agentvisor.core.repair import Answer, Calls, Entry, Other, is_whole
from agentvisor.testing.script import InvalidHistory, Reply, Said, said_at

__all__ = ["InvalidHistory", "ScriptedModel"]


class ScriptedModel(BaseLlm):
    """Answers by a script: the n-th reply where the conversation holds n - 1 contents of the model.

    So it needs no memory, and a process that was killed and started again hears what it would have heard. What another
    agent of the same session said is told to a model as a user's words: each agent has a script of its own.

        ScriptedModel([call("look_up", order="7"), "It is on its way."])

    Like a provider it refuses a conversation in which a call is not answered (`InvalidHistory`; `strict=False` lets it
    pass), and `ScriptEnded` says that it was asked once more than the script goes.
    """

    model: str = "agentvisor-scripted"

    script: Sequence[Any]
    """Of `Reply`: text, `call(...)`, or a list of both."""

    strict: bool = True

    def __init__(self, script: Sequence[Reply], *, strict: bool = True, **more: Any) -> None:
        super().__init__(script=list(script), strict=strict, **more)  # pyright: ignore[reportCallIssue] (pydantic's)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = self._said(llm_request.contents)
        usage = _usage(llm_request.contents, said)
        if stream and said.text:
            for number, word in enumerate(said.text.split(" ")):
                yield _response([types.Part(text=f" {word}" if number else word)], partial=True)
        parts = [types.Part(text=said.text)] if said.text else []
        # Without ids: ADK gives its own, which are unique in a session whatever other agents of it say.
        calls = [types.FunctionCall(name=one.tool, args=dict(one.arguments)) for _, one in said.calls]
        response = _response([*parts, *(types.Part(function_call=one) for one in calls)])
        response.usage_metadata = usage
        yield response

    def _said(self, contents: list[types.Content]) -> Said:
        if self.strict and not is_whole(list(_entries(contents))):
            told = ", ".join(f"{one.role} {[*map(_kind, one.parts or ())]}" for one in contents)
            raise InvalidHistory(f"a provider would refuse this conversation: {told}")
        return said_at(self.script, sum(content.role == "model" for content in contents))


def _usage(contents: list[types.Content], said: Said) -> types.GenerateContentResponseUsageMetadata:
    """A token is a word, or a call."""
    asked = sum(len((part.text or ".").split()) for content in contents for part in content.parts or [])
    answered = len(said.text.split()) + len(said.calls)
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=asked, candidates_token_count=answered, total_token_count=asked + answered
    )


def _response(parts: list[types.Part], *, partial: bool | None = None) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


def _entries(contents: list[types.Content]) -> Iterator[Entry]:
    """What each content does. Calls have no ids here (ADK takes its own out): they are told by name and order."""
    called, answered = Counter[str](), Counter[str]()
    for content in contents:
        parts = content.parts or []
        answers = [_id(answered, part.function_response.name) for part in parts if part.function_response]
        calls = [_id(called, part.function_call.name) for part in parts if part.function_call]
        yield from map(Answer, answers)
        if calls:
            yield Calls(tuple(calls))
        elif len(answers) < len(parts):
            yield Other()


def _id(seen: Counter[str], name: str | None) -> str:
    seen[name or ""] += 1
    return f"{name}#{seen[name or '']}"


def _kind(part: types.Part) -> str:
    return next(iter(part.model_fields_set), "")
