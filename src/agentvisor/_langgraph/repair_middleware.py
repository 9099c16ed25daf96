"""Repair as a middleware of langchain's `create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from agentvisor._langgraph.finished import afind_answers, find_answers
from agentvisor._langgraph.repair import repair_messages, unanswered
from agentvisor._langgraph.repair_hook import CHANNEL, Update, messages_of, repaired_state


class RepairMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Makes a conversation with unanswered tool calls valid before the model sees it.

    At the beginning of a run it repairs what an earlier run has left, and stores it so: one super-step a run, and a
    checkpoint only then. Before each call of the model it looks again, and what the model is shown is always valid.
    """

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 (langchain's)
        messages = messages_of(state)
        return repaired_state(messages, find_answers(get_config(), CHANNEL, unanswered(messages))) or None

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 (langchain's)
        messages = messages_of(state)
        return repaired_state(messages, await afind_answers(get_config(), CHANNEL, unanswered(messages))) or None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(_repaired(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(_repaired(request))


def _repaired(request: ModelRequest[Any]) -> ModelRequest[Any]:
    fixed = repair_messages(request.messages)
    return request if fixed == request.messages else request.override(messages=cast("list[AnyMessage]", fixed))
