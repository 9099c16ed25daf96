"""What a restarted attempt needs for ADK to go on where its session ends, and to repeat nothing that is in it.

ADK stores its steps as events and finds its place by them, but some steps are several events, and a process may end
between two: an agent's last word is stored and the agent is not marked as ended, so that its model would be asked once
more; or the input of a workflow's agent is put behind what the agent has already made of it.

An agent in an `AgentTool` has a session of its own, in memory, and the plugins of the agent that calls it. Nothing of
that session is ever seen again: what is done in there is part of the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast
from uuid import uuid4

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from agentvisor.client import tool_scope
from agentvisor.guest.runners.adk_finished import Finished
from agentvisor.guest.runners.adk_json import has_parts
from agentvisor.guest.runners.adk_questions import KINDS
from agentvisor.guest.runners.adk_sessions import RunSessions
from agentvisor.guest.runners.adk_unfinished import CallsDone, is_inside


class GoesOn(BasePlugin):
    """Keeps an agent whose last word is stored from being asked for it again, and tells effects apart by their call."""

    def __init__(self, sessions: RunSessions) -> None:
        """`sessions`: the run's."""
        super().__init__(name="agentvisor")
        self._sessions = sessions
        self.stored: set[str] = set()
        """Ids of events that were there before this attempt."""
        self.only_calls = False
        """No model is to be asked: see adk_unfinished."""
        self.long_running: Callable[[str], Awaitable[None]] | None = None
        """Told the id of each call of a long-running tool that was made, and has no result yet."""
        self.finished: Finished | None = None
        self._asked: set[tuple[str, str | None]] = set()

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """Put the input of a workflow's agent, which is never stored, before what the agent has done with it."""
        del agent
        events = callback_context.session.events
        if not self._sees(callback_context):
            return None
        if not events or events[-1].author != "user" or self._sessions.is_stored(events[-1].id):
            return None
        told = events[-1]
        path, invocation = told.node_info.path, _invocation(callback_context).invocation_id
        own = [at for at, one in enumerate(events) if one.invocation_id == invocation and one.node_info.path == path]
        if path and own and own[0] < len(events) - 1:
            events.insert(own[0], events.pop())
        return None

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Answer with nothing where the agent's last word is stored: ADK marks it as ended and goes on behind it."""
        del llm_request
        if not self._sees(callback_context):
            return None
        invocation = _invocation(callback_context)
        if self.only_calls and not is_inside(invocation.branch, invocation.isolation_scope, self._sessions.only):
            raise CallsDone
        name = callback_context.agent_name
        if (name, invocation.branch) in self._asked:
            return None
        self._asked.add((name, invocation.branch))
        last = _last_word(invocation, self.stored)
        ended = last is not None and last.author == name and last.is_final_response() and not _calls(last)
        return LlmResponse() if ended else None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Give a call another id where the session has one of that id: some models count anew in each answer.

        What became of a call is found by its id: its result, its question, its effects.
        """
        calls = [part.function_call for part in _parts(llm_response) if part.function_call and part.function_call.id]
        if not calls or not self._sees(callback_context):
            return None
        known = {one.id for event in callback_context.session.events for one in event.get_function_calls()}
        for one in calls:
            if one.id in known:
                # As short and plain as providers want ids to be.
                one.id = f"{str(one.id)[:27]}_{uuid4().hex[:12]}"
            known.add(one.id)
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """An effect of one call is not that of another: the call's id is stored, and comes again."""
        del tool, tool_args
        if not self._sees(tool_context):
            return None
        if self.finished is not None and (known := self.finished.given_back(tool_context)) is not None:
            return cast("dict[str, Any]", known)  # as it was returned: ADK takes whatever a tool returns
        if tool_context.function_call_id:
            tool_scope.enter(id(self), tool_context.function_call_id)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        del tool_args
        if not self._sees(tool_context):
            return None
        tool_scope.leave(id(self), tool_context.function_call_id)
        if tool.is_long_running and not result and tool.name not in KINDS and self.long_running is not None:
            await self.long_running(str(tool_context.function_call_id))
        if self.finished is not None:
            await self.finished.keep(tool, tool_context, result)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        del tool, tool_args, error
        if self._sees(tool_context):
            tool_scope.leave(id(self), tool_context.function_call_id)
        return None

    def _sees(self, context: CallbackContext | ToolContext) -> bool:
        """Whether it is in the run's session."""
        return _invocation(context).session_service is self._sessions


def _parts(response: LlmResponse) -> Sequence[types.Part]:
    return (response.content.parts if response.content else None) or ()


def _last_word(invocation: InvocationContext, stored: set[str]) -> Event | None:
    """The last stored event with content of this branch, unless something has begun behind it."""
    for event in reversed(invocation.session.events):
        if event.invocation_id != invocation.invocation_id or event.branch != invocation.branch:
            continue
        if has_parts(event):
            return event if event.id in stored else None
        if event.actions.agent_state is not None:
            # An agent above has begun a turn: that of a loop, or of the next in a sequence.
            return None
    return None


def _calls(event: Event) -> bool:
    return bool(event.get_function_calls() or event.get_function_responses())


def _invocation(context: CallbackContext | ToolContext) -> InvocationContext:
    return context._invocation_context  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (plugins have no other way)
