"""A model that says what a script says: for agents of the OpenAI Agents SDK under test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from agents import Model, ModelResponse, Usage
from agentvisor.testing.script import Reply, Said, said_at

__all__ = ["ScriptedModel"]


class ScriptedModel(Model):
    """Answers by a script: the n-th reply where the conversation holds n - 1 replies of the model.

    So it needs no memory, and a process that was killed and started again hears what it would have heard.

        ScriptedModel([call("look_up", order="7"), "It is on its way."])

    `ScriptEnded` says that it was asked once more than the script goes.
    """

    def __init__(self, script: Sequence[Reply]) -> None:
        self._script = list(script)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        *args: Any,
        **options: Any,
    ) -> ModelResponse:
        output = _output(said_at(self._script, _place(input)))
        return ModelResponse(output=list(output), usage=Usage(), response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        *args: Any,
        **options: Any,
    ) -> AsyncIterator[Any]:
        said = said_at(self._script, _place(input))
        for number, word in enumerate(said.text.split(" ") if said.text else []):
            delta = f" {word}" if number else word
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", content_index=0, delta=delta, item_id="message", logprobs=[],
                output_index=0, sequence_number=number,
            )  # fmt: skip
        response = Response(
            id="scripted", created_at=0, model="scripted", object="response", output=list(_output(said)),
            parallel_tool_calls=True, tool_choice="auto", tools=[],
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def _place(given: str | list[Any]) -> int:
    """How many replies of the model the conversation holds: each ends where something else comes."""
    items = [] if isinstance(given, str) else [_is_reply(cast("Mapping[str, object]", one)) for one in given]
    return sum(own and not before for before, own in zip([False, *items], items, strict=False))


def _is_reply(item: Mapping[str, object]) -> bool:
    return item.get("role") == "assistant" or item.get("type") == "function_call"


def _output(said: Said) -> list[ResponseOutputItem]:
    calls: list[ResponseOutputItem] = [
        ResponseFunctionToolCall(
            type="function_call", call_id=id_, name=one.tool, arguments=json.dumps(dict(one.arguments))
        )
        for id_, one in said.calls
    ]
    if not said.text:
        return calls
    text = ResponseOutputText(type="output_text", text=said.text, annotations=[])
    return [
        ResponseOutputMessage(id="message", type="message", role="assistant", status="completed", content=[text]),
        *calls,
    ]
