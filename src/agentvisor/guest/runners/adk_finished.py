"""Results of calls that have ended beside others of the same answer of a model: kept until all of them have one.

ADK stores the results of such calls together. Where one of them asks with `agentvisor.interrupt`, or the process dies,
those of the others are lost, and ADK makes all the calls again: what had ended is then given back instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from agentvisor._adk.stored_session import SessionKey
from agentvisor.guest.runners.adk_questions import KINDS
from agentvisor.guest.runners.adk_sessions import RunSessions
from agentvisor.protocol.metadata import Json

Results = dict[str, Json]
"""By the id of the call: {"result", "actions"}."""


class Finished:
    """Those of one session. What is kept is read once: a call is given its result back before any other runs."""

    def __init__(self, sessions: RunSessions, key: SessionKey) -> None:
        self._sessions = sessions
        self._key = key
        self._kept: dict[str, Results] = {}
        """By the event that made the calls: a model may use an id again."""
        self._writes: set[asyncio.Task[None]] = set()

    async def read(self) -> None:
        """Take in what earlier processes have kept, and forget what the session has by now."""
        self._kept = await self._sessions.finished(self._key)
        stored = await self._sessions.seen(self._key) if self._kept else None
        for event in stored.events if stored is not None else ():
            await self.forget(event)

    def given_back(self, context: ToolContext) -> Json | None:
        """The result of a call that has ended before, what its tool did to the context included; None: it has not."""
        event = _made_by(context)
        kept = self._kept.get(event.id, {}) if event is not None else {}
        for one in kept.values():
            # What the others have told the session, a call that runs now finds there, as it did the first time.
            context._invocation_context.session.state.update(_actions(one).state_delta)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        known = kept.get(str(context.function_call_id))
        if known is None:
            return None
        actions = _actions(known)
        for name in actions.model_fields_set - {"state_delta"}:
            setattr(context.actions, name, getattr(actions, name))
        context.state.update(actions.state_delta)
        result = cast("Mapping[str, Json]", known)["result"]
        return {"result": None} if result is None else result

    async def keep(self, tool: BaseTool, context: ToolContext, result: object) -> None:
        """Keep the result of a call that has ended beside others; what is not JSON is not kept, and comes again."""
        event, call = _made_by(context), str(context.function_call_id)
        if event is None or len(event.get_function_calls()) < 2 or call in self._kept.get(event.id, {}):
            return
        if tool.is_long_running or tool.name in KINDS or _asks(context.actions):
            return
        told = _told(result, context.actions)
        if told is None:
            return
        self._kept.setdefault(event.id, {})[call] = cast("Json", told)
        writing = asyncio.ensure_future(self._sessions.keep_finished(self._key, event.id, {call: told}))
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)
        # A call beside it that asks or fails cancels this one, which has ended all the same.
        await asyncio.shield(writing)

    async def settle(self) -> None:
        """Wait for what is being kept."""
        await asyncio.gather(*self._writes)

    async def forget(self, event: Event) -> None:
        """Of calls whose results the session has."""
        answered = {str(one.id) for one in event.get_function_responses()}
        if not answered:
            return
        for made_by in [made_by for made_by, results in self._kept.items() if answered.issuperset(results)]:
            del self._kept[made_by]
            await self._sessions.forget_finished(self._key, made_by)


def _made_by(context: ToolContext) -> Event | None:
    """The event that holds the call."""
    events: Sequence[Event] = context.session.events
    call = context.function_call_id
    return next((one for one in reversed(events) if any(each.id == call for each in one.get_function_calls())), None)


def _asks(actions: EventActions) -> bool:
    """Whether the tool has not run, and asks for a person first."""
    return bool(actions.requested_tool_confirmations or actions.requested_auth_configs)


def _actions(kept: Json) -> EventActions:
    return EventActions.model_validate(cast("Mapping[str, Any]", kept)["actions"])


def _told(result: object, actions: EventActions) -> dict[str, object] | None:
    """What is kept of a call; None where it would not come back as it was."""
    try:
        told = {"result": result, "actions": actions.model_dump(mode="json", by_alias=True, exclude_none=True)}
        read = json.loads(json.dumps(told, allow_nan=False))
        comes_back = bool(read == told and EventActions.model_validate(read["actions"]) == actions)
    except (TypeError, ValueError):
        return None
    return told if comes_back else None
