"""A model that says what a script says: for CrewAI agents under test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crewai.llms.base_llm import BaseLLM
from pydantic import PrivateAttr

from agentvisor.testing.script import Reply, Said, ScriptEnded, said_at

__all__ = ["ScriptedLLM"]

Scripts = Sequence[Reply] | Mapping[str, Sequence[Reply]]


class ScriptedLLM(BaseLLM):
    """Answers by a script: the n-th reply where the conversation holds n - 1 messages of the assistant, or
    feedback to a draft of its.

    So it needs no memory, and a process that was killed and started again hears what it would have heard. A crew has a
    conversation for each task: with several tasks, each has a script of its own, found by a text in its description.

        ScriptedLLM([call("look_up", order="7"), "It is on its way."])
        ScriptedLLM({"Find the order": ["Order 7"], "Write to": ["Dear customer"]})
    """

    _scripts: Mapping[str, Sequence[Reply]] = PrivateAttr(default_factory=dict[str, Sequence[Reply]])

    def __init__(self, script: Scripts, *, model: str = "scripted", **more: Any) -> None:
        super().__init__(model=model, **more)
        self._scripts = script if isinstance(script, Mapping) else {"": script}

    def call(
        self,
        messages: str | list[Any],
        tools: list[dict[str, Any]] | None = None,
        callbacks: list[Any] | None = None,
        available_functions: dict[str, Any] | None = None,
        from_task: Any = None,
        from_agent: Any = None,
        response_model: Any = None,
    ) -> Any:
        """The reply of the script; tool calls in the form of OpenAI's."""
        said = self._said([{"role": "user", "content": messages}] if isinstance(messages, str) else messages)
        if said.calls:
            return [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": one.tool, "arguments": json.dumps(dict(one.arguments))},
                }
                for id_, one in said.calls
            ]
        if self.stream:
            for number, word in enumerate(said.text.split(" ")):
                self._emit_stream_chunk_event(f" {word}" if number else word, from_task, from_agent)
        return response_model.model_validate_json(said.text) if response_model is not None else said.text

    async def acall(self, messages: str | list[Any], *rest: Any, **named: Any) -> Any:
        """The same."""
        return self.call(messages, *rest, **named)

    def supports_function_calling(self) -> bool:
        """CrewAI then gives tools, instead of describing them."""
        return True

    def _said(self, messages: list[Any]) -> Said:
        told = "\n".join(str(one["content"]) for one in messages if one["role"] == "user")
        script = next((script for text, script in self._scripts.items() if text in told), None)
        if script is None:
            raise ScriptEnded(f"no script is for this task: there are {list(self._scripts)}, and it says {told!r}")
        return said_at(script, sum(one["role"] == "assistant" or _is_feedback(one) for one in messages))


def _is_feedback(message: Any) -> bool:
    """What a person said of a draft; CrewAI tells its model that, and not the draft."""
    return message["role"] == "user" and str(message["content"]).startswith("User feedback:")
