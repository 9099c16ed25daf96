"""A model that says what a script says: for Strands agents under test."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from strands.models.model import Model
from strands.types.content import Message, Messages
from strands.types.streaming import StreamEvent
from strands.types.tools import ToolSpec

from agentvisor.core.repair import Answer, Calls, Entry, Other, is_whole
from agentvisor.testing.script import InvalidHistory, Reply, Said, said_at

__all__ = ["InvalidHistory", "ScriptedModel"]

Output = TypeVar("Output", bound=BaseModel)


class ScriptedModel(Model):
    """Answers by a script: the n-th reply where the conversation holds n - 1 messages of the assistant.

    So it needs no memory, and a process that was killed and started again hears what it would have heard.

        ScriptedModel([call("look_up", order="7"), "It is on its way."])

    Like a provider it refuses a conversation in which a tool use has no result (`InvalidHistory`; `strict=False` lets
    it pass), and `ScriptEnded` says that it was asked once more than the script goes.
    """

    def __init__(self, script: Sequence[Reply], *, strict: bool = True) -> None:
        self._script = list(script)
        self._strict = strict

    def update_config(self, **model_config: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> dict[str, Any]:
        return {}

    async def stream(
        self,
        messages: Messages,
        tool_specs: list[ToolSpec] | None = None,
        system_prompt: str | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamEvent]:
        for event in _events(self._said(messages)):
            yield event

    async def structured_output(
        self, output_model: type[Output], prompt: Messages, system_prompt: str | None = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Output | Any], None]:
        """The reply is JSON of the model that is asked for."""
        yield {"output": output_model.model_validate_json(self._said(prompt).text)}

    def _said(self, messages: Messages) -> Said:
        if self._strict and not is_whole([entry for message in messages for entry in _entries(message)]):
            told = ", ".join(f"{one['role']} {[*map(_kind, one['content'])]}" for one in messages)
            raise InvalidHistory(f"a provider would refuse this conversation: {told}")
        return said_at(self._script, sum(message["role"] == "assistant" for message in messages))


def _entries(message: Message) -> Iterator[Entry]:
    """What a message does; results come first in it."""
    blocks = message["content"]
    calls = tuple(block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block)
    answers = [Answer(block["toolResult"]["toolUseId"]) for block in blocks if "toolResult" in block]
    yield from answers
    if calls:
        yield Calls(calls)
    elif len(answers) < len(blocks):
        yield Other()


def _events(said: Said) -> Iterator[StreamEvent]:
    yield {"messageStart": {"role": "assistant"}}
    if said.text:
        yield {"contentBlockStart": {"start": {}}}
        for number, word in enumerate(said.text.split(" ")):
            yield {"contentBlockDelta": {"delta": {"text": f" {word}" if number else word}}}
        yield {"contentBlockStop": {}}
    for id_, one in said.calls:
        yield {"contentBlockStart": {"start": {"toolUse": {"name": one.tool, "toolUseId": id_}}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(one.arguments))}}}}
        yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "tool_use" if said.calls else "end_turn"}}


def _kind(block: object) -> str:
    return next(iter(block)) if isinstance(block, dict) else ""  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
