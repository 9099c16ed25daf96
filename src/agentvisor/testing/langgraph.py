"""A chat model that says what a script says: for LangGraph and LangChain agents under test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import ConfigDict

from agentvisor._langgraph.repair import repair_messages
from agentvisor.testing.script import InvalidHistory, Reply, Said, said_at

__all__ = ["InvalidHistory", "ScriptedChatModel"]


class ScriptedChatModel(BaseChatModel):
    """Answers by a script: the n-th reply where the conversation holds n - 1 messages of a model.

    So it needs no memory, and a process that was killed and started again hears what it would have heard.

        ScriptedChatModel(script=[call("look_up", order="7"), "It is on its way."])

    Like a provider it refuses a conversation in which a tool call is not answered (`InvalidHistory`; `strict=False`
    lets it pass), and `ScriptEnded` says that it was asked once more than the script goes.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: Sequence[Any]
    """Of `Reply`: text, `call(...)`, or a list of both."""

    strict: bool = True

    def __init__(self, script: Sequence[Reply], *, strict: bool = True, **more: Any) -> None:
        super().__init__(script=list(script), strict=strict, **more)  # pyright: ignore[reportCallIssue] (pydantic's)

    @property
    def _llm_type(self) -> str:
        return "agentvisor-scripted"

    def bind_tools(  # pyright: ignore[reportIncompatibleMethodOverride] (langchain's own models return themselves too)
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **_: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The script already says which tools are called."""
        del tools
        return cast("Runnable[LanguageModelInput, AIMessage]", self)

    def _said(self, messages: list[BaseMessage]) -> Said:
        if self.strict and repair_messages(messages) != messages:
            told = ", ".join(_shown(message) for message in messages)
            raise InvalidHistory(f"a provider would refuse this conversation (AgentVisor can repair it): {told}")
        return said_at(self.script, sum(isinstance(message, AIMessage) for message in messages))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = self._said(messages)
        calls = [{"name": one.tool, "args": dict(one.arguments), "id": id_} for id_, one in said.calls]
        message = AIMessage(said.text, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._said(messages)
        for number, word in enumerate(said.text.split(" ") if said.text else ()):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=f" {word}" if number else word))
            if run_manager is not None:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk
        calls = [
            tool_call_chunk(name=one.tool, args=json.dumps(dict(one.arguments)), id=id_, index=index)
            for index, (id_, one) in enumerate(said.calls)
        ]
        if calls or not said.text:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))


def _shown(message: BaseMessage) -> str:
    calls = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    answers = getattr(message, "tool_call_id", "")
    return " ".join([message.type, *(f"calls {id_}" for id_ in calls), *([f"answers {answers}"] if answers else [])])
